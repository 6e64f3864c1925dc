"""MLflow's own pages on two runs: what the tracker told is drawn as charts and compared there."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from agentrecipes.tracking.mlflow.tracker import MlflowTracker
from agentrecipes.tracking.mlflow.ui import served
from agentrecipes.tracking.protocol import RunInfo

pytestmark = pytest.mark.browser
RATES = {"slow": 0.001, "quick": 0.003}
STEPS = 5
PATIENCE = 60_000.0  # milliseconds, of a page that loads megabytes of scripts on a busy machine


def told(folder, run: str) -> str:
    """The identity of a run of a few steps in the folder's store."""
    recipe = {"name": "demo", "seed": 7, "optimizer": {"learning_rate": RATES[run]}}
    (folder / "recipe.yaml").write_text("name: demo\n")
    tracker = MlflowTracker(folder, patience_seconds=300.0)
    info = RunInfo(
        run=run,
        recipe_file=folder / "recipe.yaml",
        experiment="demo",
        recipe=recipe,
        recipe_hash=run,
        seed=7,
    )
    tracker.start(info)
    for step in range(STEPS):
        values = {"reward/total": step * RATES[run], "reward/spread": 0.5, "loss/policy": 1.0}
        tracker.metrics(values, step)
    tracker.finish("finished")
    assert tracker.lost == []
    assert tracker.run_id is not None
    return tracker.run_id


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The address of the pages, and the identities of the two runs that they show."""
    folder = tmp_path_factory.mktemp("store")
    runs = [told(folder, run) for run in RATES]
    with served(f"sqlite:///{folder}/mlflow.db", folder / "pages.log") as address:
        yield address, runs


@pytest.fixture
def page(chromium):
    context = chromium.new_context(viewport={"width": 1400, "height": 1400})
    context.set_default_timeout(PATIENCE)
    yield context.new_page()
    context.close()


def test_two_runs_are_compared_with_their_parameters_and_a_chart_for_each_metric(store, page):
    address, runs = store
    picked = f"runs={quote(json.dumps(runs))}&experiments={quote(json.dumps(['1']))}"
    page.goto(f"{address}/#/compare-runs?{picked}")
    page.get_by_text("Comparing 2 Runs").first.wait_for()
    for rate in RATES.values():
        page.get_by_text(str(rate), exact=True).first.wait_for()
    assert page.get_by_text("optimizer.learning_rate", exact=True).count() >= 1


def test_metrics_are_drawn_as_lines_group_by_group_and_runs_in_one_chart(store, page):
    address, _ = store
    page.goto(f"{address}/#/experiments/1/runs?compareRunsMode=CHART")
    for group, charts in (("loss", 1), ("reward", 2)):
        own = page.locator(f"div:text-is('{group}') + div:text-is('({charts})')")
        own.wait_for()
    page.wait_for_function("document.querySelectorAll('.scatterlayer .js-line').length >= 6")
    assert page.locator(".js-plotly-plot").count() == 3
    for run in RATES:
        assert page.get_by_text(f"{run} (reward/total)").count() == 1
    # The steeper run's line ends three times as high as the other's, on one axis; all else is flat.
    stroke, low, high = sorted(set(heights(page)))
    assert high - stroke == pytest.approx(3 * (low - stroke), rel=1e-2)


def heights(page):
    """Of the boxes of all lines that are drawn."""
    found = page.locator(".scatterlayer .js-line")
    return [found.nth(number).bounding_box()["height"] for number in range(found.count())]
