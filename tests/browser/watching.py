"""What no test may see in a browser: errors, violations of the content policy, requests to other hosts."""

import re
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Request

REPORT_VIOLATIONS = """
addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI, sourceFile, lineNumber }) =>
  console.error(`CSP: ${effectiveDirective} forbids ${blockedURI} (${sourceFile}:${lineNumber})`));
"""


class Faults:
    """The faults of all pages of a context. A test names those that it provokes."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        """`url`: that of the service, the only one that may be reached."""
        self._host = urlsplit(url).netloc
        self._found: list[str] = []
        self._expected: list[re.Pattern[str]] = []
        context.add_init_script(REPORT_VIOLATIONS)
        context.on("console", self._read_console)
        context.on("weberror", lambda error: self._found.append(f"uncaught: {error.error}"))
        context.on("request", self._check_host)

    def expect(self, pattern: str) -> None:
        """Faults that match are none in this test, such as `status of 401`."""
        self._expected.append(re.compile(pattern))

    def clear(self) -> None:
        """Another test begins in the context."""
        self._found.clear()
        self._expected.clear()

    def unexpected(self) -> list[str]:
        return [fault for fault in self._found if not any(known.search(fault) for known in self._expected)]

    def _read_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._found.append(f"console: {message.text} ({message.location['url']})")

    def _check_host(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme not in ("blob", "data") and address.netloc != self._host:
            self._found.append(f"request to another host: {request.url}")
