"""At 375 px: nothing is wider than the screen, cut off, or too small for a finger.

In English, whose times are long, and in German, whose words are.
"""

import pytest

from tests.browser.all_screens import show, world  # noqa: F401

pytestmark = pytest.mark.timeout(120)

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


@pytest.mark.parametrize("language", ["en", "de"])
def test_it_fits(show, language):  # noqa: F811
    page = show(
        viewport={"width": 375, "height": 700},
        locale=language,
        has_touch=True,
        reduced_motion="reduce",
    )
    assert page.evaluate("document.documentElement.lang") == language
    assert page.evaluate(FAULTS, LEAST_TARGET_PX) == []


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
