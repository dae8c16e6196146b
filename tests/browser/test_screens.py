"""Every screen, dialog and menu suits everyone: on a phone, by keys alone, and for who cannot see it."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.all_screens import SCREENS, TOURED, World, world  # noqa: F401
from tests.browser.conftest import Axe, watched_page
from tests.e2e.running import Server

pytestmark = pytest.mark.timeout(240)

PHONE: dict[str, Any] = {"width": 375, "height": 700}
DESKTOP: dict[str, Any] = {"width": 1280, "height": 740}
PHONE_PAGE: dict[str, Any] = {"viewport": PHONE, "has_touch": True}

LEAST_TARGET_PX = 24

# Names of recordings and other people's words may be shortened: they are all that has `dir="auto"`.
FAULTS = """(least) => {
  const faults = [];
  const nameOf = (element) =>
    `${element.tagName}.${element.className?.baseVal ?? element.className}: ` +
    (element.ariaLabel || element.textContent.trim()).slice(0, 50);
  const root = [...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body;
  const isShown = (element) =>
    element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) &&
    !element.closest(".visually-hidden, [hidden]") && element.getClientRects().length > 0;
  const wide = document.documentElement.scrollWidth;
  if (wide > innerWidth) faults.push(`the page is ${wide} px wide`);
  if (root.matches("dialog") && root.scrollWidth > root.clientWidth + 1) faults.push("a dialog is too wide");

  const targets = "button, a[href], input, select, textarea, summary, [role=menuitem], [role=slider]";
  for (const element of root.querySelectorAll(targets)) {
    if (!isShown(element)) continue;
    // A link in a sentence is as high as its line. A label is part of its field.
    if (element.localName === "a" && getComputedStyle(element).display === "inline") continue;
    const { width, height } = (element.closest("label") ?? element).getBoundingClientRect();
    if (Math.min(width, height) < least) faults.push(`${nameOf(element)} is ${width} x ${height} px`);
  }

  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !isShown(element)) continue;
    if (element.closest("[dir=auto], option, .fleet-table, [aria-hidden=true]")) continue;
    range.selectNodeContents(node);
    const text = range.getBoundingClientRect();
    for (let box = element; box && box !== root; box = box.parentElement) {
      const { overflowX, overflowY } = getComputedStyle(box);
      const area = box.getBoundingClientRect();
      const isCut = (overflowX === "hidden" && (text.right > area.right + 1 || text.left < area.left - 1)) ||
        (overflowY === "hidden" && text.bottom > area.bottom + 2);
      const isOutside = box.matches("button, .button, .badge, td, th") &&
        (text.right > area.right + 1 || text.left < area.left - 1);
      if (isCut || isOutside) faults.push(`cut: ${nameOf(element)}`);
      if (overflowX === "auto" || overflowX === "scroll") break;
    }
    if (text.right > innerWidth + 1 || text.left < -1) faults.push(`outside: ${nameOf(element)}`);
  }
  return faults;
}"""

# As another tab does.
SPEAK = """(language) => {
  const key = "whisperfleet.language";
  localStorage.setItem(key, JSON.stringify(language));
  dispatchEvent(new StorageEvent("storage", { key }));
}"""

MOST_CONTROLS = 150

# Numbers the elements that the Tab key must reach.
MARK = """() => {
  const root = [...document.querySelectorAll("dialog[open]")].at(-1) ?? document;
  const wanted = [...root.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")]
    .filter((element) => element.tabIndex >= 0 && !element.disabled && element.type !== "file")
    .filter((element) => element.checkVisibility({ visibilityProperty: true }))
    // Arrows move within a group.
    .filter((element, _, all) => element.type !== "radio" ||
      element === all.find((other) => other.type === "radio" && other.name === element.name));
  wanted.forEach((element, index) => { element.dataset.tab = index; });
  document.activeElement?.blur?.();
  return wanted.map((element) => element.outerHTML.slice(0, 120));
}"""

# Which of them has the focus, and whether it shows.
FOCUSED = """() => {
  const element = document.activeElement;
  const isMarked = ({ outlineStyle, outlineWidth, boxShadow }) =>
    (outlineStyle !== "none" && parseFloat(outlineWidth) >= 1) || boxShadow !== "none";
  const box = element.getBoundingClientRect();
  return {
    index: element.dataset.tab ?? null,
    isBody: element === document.body || element === document.documentElement,
    // The mark of a link that covers its row is around the row.
    isShown: isMarked(getComputedStyle(element)) || isMarked(getComputedStyle(element, "::after")),
    isInView: box.bottom > 0 && box.top < innerHeight && box.width > 0,
    html: element.outerHTML.slice(0, 120),
  };
}"""


@pytest.fixture(scope="module")
def context_options() -> dict[str, Any]:
    return PHONE_PAGE


@pytest.mark.parametrize("show", SCREENS, ids=lambda show: show.__name__)
def test_it_suits_everyone(
    show: Callable[..., Page],
    browser: Browser,
    page: Page,
    world: World,  # noqa: F811
    axe: Axe,
) -> None:
    """On a phone and a desktop: nothing is too wide, cut off, too small for a finger, or hard to perceive.

    German has the longest words.
    """
    with ExitStack() as stack:

        def new_page(server: Server, **options: Any) -> Page:
            if server is world.site and not options:
                return page
            return stack.enter_context(watched_page(browser, server, **PHONE_PAGE, **options))

        screen = show(new_page, world)
        found = {}
        for language in ("de", "es", "en"):
            screen.evaluate(SPEAK, language)
            expect(screen.locator("html")).to_have_attribute("lang", language)
            found[language] = screen.evaluate(FAULTS, LEAST_TARGET_PX)
        found["on a phone"] = violations(screen, axe, "dark")
        screen.set_viewport_size(DESKTOP)
        found["on a desktop"] = violations(screen, axe, "light")
        assert not any(found.values()), found
        root = "document.documentElement"
        assert screen.evaluate(f"{root}.scrollWidth <= {root}.clientWidth")
        if show in TOURED:
            tour(screen)


def violations(screen: Page, axe: Axe, scheme: Literal["dark", "light"]) -> list[str]:
    screen.emulate_media(color_scheme=scheme)
    return axe(screen)


def tour(screen: Page) -> None:
    """The Tab key reaches everything, and the focus is seen."""
    wanted = screen.evaluate(MARK)
    assert wanted
    missing = set(range(len(wanted)))
    lost = 0
    for _ in range(MOST_CONTROLS):
        screen.keyboard.press("Tab")
        focused = screen.evaluate(FOCUSED)
        if focused["isBody"]:  # the browser's own controls come between the last one and the first
            lost += 1
            assert lost <= 2, f"the focus is lost; not reached: {[wanted[index] for index in missing]}"
            continue
        assert focused["isShown"], f"the focus is not seen: {focused['html']}"
        assert focused["isInView"], f"out of sight: {focused['html']}"
        missing.discard(int(focused["index"] or -1))
        if not missing:
            break
    assert not missing, [wanted[index] for index in missing]


def test_what_does_not_fit_is_found(page):
    page.goto("/")
    page.get_by_role("main").wait_for()
    page.evaluate(
        """() => {
          const add = (name, text, style) => {
            const element = document.body.appendChild(document.createElement(name));
            element.textContent = text;
            Object.assign(element.style, style);
          };
          add("button", "wide", { width: "3000px" });
          add("button", "", { width: "10px", height: "10px", padding: 0 });
          add("p", "cut off", { width: "20px", overflow: "hidden", whiteSpace: "nowrap" });
        }"""
    )
    faults = "\n".join(page.evaluate(FAULTS, LEAST_TARGET_PX))
    assert "the page is" in faults
    assert "is 10 x 10 px" in faults
    assert "cut: P.: cut off" in faults


def test_axe_finds_violations(page, axe):
    page.goto("/")
    page.evaluate("() => document.body.append(document.createElement('button'))")
    assert [line.partition(":")[0] for line in axe(page)] == ["button-name"]
