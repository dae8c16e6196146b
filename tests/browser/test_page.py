"""The page opens: nothing is missing, nothing is forbidden, nothing comes from elsewhere."""

import pytest
from playwright.sync_api import expect

from tests.browser.modules import load_modules


def test_it_opens(page, site):
    page.goto("/")
    page.get_by_role("main").wait_for()
    assert page.title().endswith("whisperfleet")
    service = page.evaluate("() => JSON.parse(document.getElementById('service').textContent)")
    assert service["version"] == site.client.get("/health").json()["version"]


@pytest.mark.parametrize(
    ("deed", "directive"),
    [
        ("document.body.innerHTML = '<b>x</b>'", "require-trusted-types-for"),
        ("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=alert(1)>')", "require-trusted"),
        (
            "document.body.append(Object.assign(document.createElement('style'), {textContent: 'a{}'}))",
            "style",
        ),
        ("fetch('http://127.0.0.1:9/')", "connect-src"),
        ("new Image().src = 'http://127.0.0.1:9/x.png'", "img-src"),
    ],
)
def test_the_content_policy_forbids(page, deed, directive):
    page.goto("/")
    violation = page.evaluate(
        """async (deed) => {
        const violation = new Promise((resolve) => addEventListener("securitypolicyviolation", resolve));
        try { await new Function(deed)(); } catch {}
        return (await violation).effectiveDirective;
    }""".replace("new Function(deed)()", f"(() => {{ {deed} }})()")
    )
    assert violation.startswith(directive)
    assert any("CSP" in fault for fault in page.faults.unexpected())
    page.faults.expect(".")


def test_the_documentation_obeys_its_content_policy(page):
    page.goto("/docs")
    page.get_by_text("/v1/audio/transcriptions").first.click()
    page.get_by_role("button", name="Try it out").first.wait_for()


@pytest.mark.parametrize("way", ["Close", "Escape"])
@pytest.mark.parametrize("name", ["Settings", "List of keys"])
def test_the_focus_comes_back_from_a_dialog(page, name, way):
    page.goto("/")
    opener = page.get_by_role("button", name=name)
    opener.focus()
    page.keyboard.press("Enter")
    if way == "Escape":
        page.keyboard.press(way)
    else:
        page.get_by_role("dialog").get_by_role("button", name=way).press("Enter")
    page.get_by_role("dialog").wait_for(state="detached")
    expect(opener).to_be_focused()


def test_a_stream_that_falls_silent_is_begun_anew(page):
    load_modules(page)
    page.clock.install()
    page.goto("/")
    page.evaluate("""async () => {
        const { follow } = await import("/web/core/events.js");
        window.connections = 0;
        window.events = [];
        const { fetch } = window;
        window.fetch = async (address, options) => {
            if (!address.endsWith("/silent")) return fetch(address, options);
            window.connections += 1;
            const first = new TextEncoder().encode(`data: ${window.connections}\\n\\n`);
            return new Response(new ReadableStream({ start: (stream) => stream.enqueue(first) }));
        };
        const { signal } = new AbortController();
        follow("/silent", { onEvent: ({ data }) => void window.events.push(data), signal });
    }""")
    page.wait_for_function("() => window.events.length === 1")
    page.clock.run_for(40_000)
    assert page.evaluate("window.connections") == 1
    page.clock.run_for(10_000)
    page.wait_for_function("() => window.events.join() === '1,2'")


def test_language_and_colours_are_those_of_all_tabs(page):
    page.goto("/")
    other = page.context.new_page()
    other.goto("/")
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("Language of this page").select_option("de")
    page.get_by_label("Farben").select_option("dark")
    expect(other.locator("html")).to_have_attribute("lang", "de")
    expect(other.locator("html")).to_have_attribute("data-theme", "dark")
