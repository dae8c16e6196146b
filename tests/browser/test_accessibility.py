"""No screen, dialog or menu stands in anyone's way, in light and in dark colours, wide and narrow."""

import pytest

from tests.browser.all_screens import show, world  # noqa: F401

pytestmark = pytest.mark.timeout(120)


def test_it_has_no_serious_violation(show, axe):  # noqa: F811
    page = show()
    found = {}
    for width, scheme in ((1280, "light"), (1280, "dark"), (375, "dark"), (375, "light")):
        page.set_viewport_size({"width": width, "height": 740})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.wait_for_timeout(50)  # the theme is drawn
        found[width, scheme] = axe(page)
    assert not any(found.values()), found


def test_axe_finds_violations(page, axe):
    page.goto("/")
    page.evaluate("() => document.body.append(document.createElement('button'))")
    assert [line.partition(":")[0] for line in axe(page)] == ["button-name"]
