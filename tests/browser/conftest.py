"""A page in Chromium: where it is installed, else the tests are skipped and say why."""

from __future__ import annotations

import os
import shutil
from typing import Any

import pytest
from tests.tracking.report_made import made_run

from agentrecipes.tracking.report.page import write_report

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@pytest.fixture(scope="session")
def chromium():
    """The browser; `AGENTRECIPES_CHROMIUM` names its program where it is not on the path."""
    library = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed: pip install playwright"
    )
    given = os.environ.get("AGENTRECIPES_CHROMIUM")
    path = given or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no Chromium on the path: apt-get install chromium")
    with library.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    """The page of a made run."""
    root = tmp_path_factory.mktemp("report")
    return write_report([made_run(root / "demo-1")], root / "report.html")


@pytest.fixture
def open_page(chromium, report):
    """Open the report from disk; what the page complains of or asks the network for fails it."""
    contexts, trouble = [], []

    def call(**context: Any) -> Any:
        contexts.append(chromium.new_context(**{"viewport": DESKTOP, **context}))
        page = contexts[-1].new_page()
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: trouble.append(dialog.message))
        page.on("request", lambda request: asked(request.url))
        page.goto(report.as_uri())
        return page

    def asked(url) -> None:
        if url != report.as_uri():
            trouble.append(url)

    yield call
    for context in contexts:
        context.close()
    assert trouble == []


DESKTOP = {"width": 1280, "height": 900}
