"""The page of a study: every trial is there, drawn where it belongs, and nothing is code."""

from __future__ import annotations

import re

import pytest
from tests.sweeps.scripted import RATE, Workers, conducted, sweep_of

from agentrecipes.sweeps.drawing import Mark, Scatter, bars
from agentrecipes.sweeps.outcome import outcome
from agentrecipes.sweeps.page import page

NAME = "stages.reinforce.algorithm.name"
TWO = (
    "objective:\n  - {metric: exact_match}\n  - {metric: rounds_mean, direction: minimize}\n"
    "sampler: random\ntrials: 8\nspace:\n"
    f"  {RATE}: {{float: [1e-4, 1e-2], log: true}}\n"
    f"  {NAME}: {{choice: [ppo, reinforce]}}\n"
)


def circles(svg: str) -> list[tuple[str, float, float]]:
    found = re.findall(r'<circle class="(\w+)" cx="([\d.]+)" cy="([\d.]+)"', svg)
    return [(kind, float(x), float(y)) for kind, x, y in found]


def test_points_stand_where_their_values_say():
    marks = [Mark(1e-4, 0.0, "a"), Mark(1e-3, 1.0, "b", "best"), Mark(1e-2, 0.5, "c")]
    svg = Scatter("t", "rate", "score", marks, log=True).svg()
    # From 52 to 348 across, the logarithm's middle at 200; from 180 up to 12, .5 at 96.
    assert circles(svg) == [("done", 52.0, 180.0), ("best", 200.0, 12.0), ("done", 348.0, 96.0)]
    texts = Scatter("t", "name", "score", [Mark("p", 0.0, ""), Mark("q", 1.0, "")]).svg()
    # Two names stand in the middles of the two halves: 52 + 296 / 4 and 52 + 3 * 296 / 4.
    assert [x for _, x, _ in circles(texts)] == [126.0, 274.0]


def test_a_single_point_has_room_on_both_sides():
    [(_, x, y)] = circles(Scatter("t", "x", "y", [Mark(3.0, 2.0, "")]).svg())
    assert (x, y) == (200.0, 96.0)


def test_bars_are_as_long_as_their_shares_the_largest_first():
    svg = bars("t", [("small", 0.25), ("large", 0.75)])
    assert re.findall(r'rect class="bar" x="4" y="\d+" width="([\d.]+)"', svg) == ["225.0", "75.0"]
    assert svg.index("large") < svg.index("small")


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    sweep = sweep_of(folder, TWO)

    def formula(values, seed, iteration) -> float:
        return values[RATE] * 100 * iteration / 30 + (0.001 if values[NAME] == "ppo" else 0.0)

    study = conducted(sweep, folder, Workers(formula))
    shares = [study.importances(0), study.importances(1)]
    return outcome(sweep, study.trials()), sweep.space, shares


def test_the_page_has_every_trial_and_marks_the_front(told):
    data, space, shares = told
    html = page(data, space, shares)
    assert html.count("<tr>") == 1 + 8
    figures = re.findall(r"<figcaption>([^<]+)</figcaption>", html)
    assert figures[:2] == [
        "Trial by trial: exact_match",
        "Where neither gains for free (green): exact_match",
    ]
    assert "What exact_match depends on" in figures
    assert f"{RATE}: exact_match" in figures
    assert "<script" not in html
    front = html.split("<figure>")[2]
    assert sum(kind == "best" for kind, _, _ in circles(front)) == len(data["front"]) == 1
    assert len(circles(front)) == 8


def test_what_moves_the_value_is_what_it_depends_on(told):
    _, _, shares = told
    assert sum(shares[0].values()) == pytest.approx(1.0, abs=1e-9)
    assert shares[0][RATE] > 0.8
    assert shares[1] == {}  # equal everywhere: nothing depends on anything


def test_a_name_that_is_markup_stays_text(told):
    data, space, shares = told
    table = [{**data["table"][0], "state": "failed", "values": [], "reason": "<b>no</b>"}]
    html = page({**data, "table": table, "study": "<i>s"}, space, shares)
    assert "<b>no</b>" not in html
    assert "&lt;b&gt;no&lt;/b&gt;" in html
    assert "<i>s" not in html
