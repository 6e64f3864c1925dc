"""axe-core finds nothing in the report that would keep anybody from reading it."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_axe_has_no_finding(open_page, scheme, size):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="axe is not installed: pip install axe-playwright-python",
    )
    # The page forbids foreign scripts, axe's too: its own rule is left out for this reader.
    page = open_page(viewport=size, color_scheme=scheme, bypass_csp=True)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    page.locator("#list .option", has_text="Remus").click()
    found = axe.Axe().run(page)
    assert found.response["passes"]
    assert [(each["id"], each["impact"]) for each in found.response["violations"]] == []
