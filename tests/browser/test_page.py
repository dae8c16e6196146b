"""The page opens: nothing is missing, nothing is forbidden, nothing comes from elsewhere."""

import itertools

from playwright.sync_api import expect

from tests.browser.conftest import new_tab
from tests.browser.modules import load_modules

VIOLATION_OF = """async (deed) => {
    const violation = new Promise((resolve) =>
        addEventListener("securitypolicyviolation", resolve, { once: true }));
    try { await DEED } catch {}
    return (await violation).effectiveDirective;
}"""

FORBIDDEN = {
    "document.body.innerHTML = '<b>x</b>'": "require-trusted-types-for",
    "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=alert(1)>')": "require-trusted",
    "document.body.append(Object.assign(document.createElement('style'), {textContent: 'a{}'}))": "style",
    "fetch('http://127.0.0.1:9/')": "connect-src",
    "new Image().src = 'http://127.0.0.1:9/x.png'": "img-src",
}


def test_it_opens_and_its_content_policy_forbids_what_it_does_not_do(page, site):
    page.goto("/")
    page.get_by_role("main").wait_for()
    assert page.title().endswith("whisperfleet")
    service = page.evaluate("() => JSON.parse(document.getElementById('service').textContent)")
    assert service["version"] == site.client.get("/health").json()["version"]
    assert not page.faults.unexpected()
    found = {
        deed: page.evaluate(VIOLATION_OF.replace("DEED", f"(() => {{ {deed} }})()")) for deed in FORBIDDEN
    }
    assert {
        deed: directive for deed, directive in found.items() if not directive.startswith(FORBIDDEN[deed])
    } == {}
    assert sum("CSP" in fault for fault in page.faults.unexpected()) >= len(FORBIDDEN)
    page.faults.expect(".")


def test_the_focus_comes_back_from_a_dialog(page):
    page.goto("/")
    for name, way in itertools.product(("Settings", "List of keys"), ("Close", "Escape")):
        opener = page.get_by_role("button", name=name)
        opener.focus()
        page.keyboard.press("Enter")
        if way == "Escape":
            page.keyboard.press(way)
        else:
            page.get_by_role("dialog").get_by_role("button", name=way).press("Enter")
        page.get_by_role("dialog").wait_for(state="detached")
        expect(opener).to_be_focused()


def test_a_stream_that_falls_silent_is_begun_anew(new_page, site):
    page = new_page(site)
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
    other = new_tab(page.context)
    other.goto("/")
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("Language of this page").select_option("de")
    page.get_by_label("Farben").select_option("dark")
    expect(other.locator("html")).to_have_attribute("lang", "de")
    expect(other.locator("html")).to_have_attribute("data-theme", "dark")
