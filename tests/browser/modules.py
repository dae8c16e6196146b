"""Pages of which a test imports modules."""

from playwright.sync_api import Page


def load_modules(page: Page, entry: str = 'import "../main.js";') -> None:
    """Let the page load its modules, not their bundle: a test that imports one shares it with the page.

    `entry`: the script in place of the bundle. Less than the whole page loads sooner.
    """
    page.context.route(
        "**/web/bundle/main.js",
        lambda route: route.fulfill(content_type="text/javascript", body=entry),
    )
