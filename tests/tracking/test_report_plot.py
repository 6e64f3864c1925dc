"""Curves are drawn in shares of the plot, so that they fit any screen."""

from __future__ import annotations

from typing import Any

import pytest

from agentrecipes.tracking.report.plot import Axis, Series, bounds, nice_ticks, plot, says
from agentrecipes.tracking.report.seeds import point
from tolerances import FLOAT64

CLOSE = {"rel": FLOAT64["rtol"], "abs": FLOAT64["atol"]}
TWO = Axis.of({"imitate": 1700, "reinforce": 100}, {"imitate": 1, "reinforce": 4})


def test_a_stage_begins_where_the_one_before_ended():
    # One point of five would be a fifth of the width, and that is also the least a stage gets.
    assert TWO.x("imitate", 0) == 0.0
    assert TWO.x("imitate", 1700) == pytest.approx(0.2, **CLOSE)
    assert TWO.x("reinforce", 0) == pytest.approx(0.2, **CLOSE)
    assert TWO.x("reinforce", 50) == pytest.approx(0.6, **CLOSE)
    assert TWO.x("reinforce", 100) == pytest.approx(1.0, **CLOSE)


def test_what_lies_beyond_a_stage_s_end_stays_in_the_plot():
    assert TWO.x("reinforce", 120) == pytest.approx(1.0, **CLOSE)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.4, 0.9], (0.0, 1.0)),  # shares that use the range
        ([0.0, 0.01], (0.0, 0.01)),  # shares that do not
        ([0.0, 0.0], (0.0, 1.0)),
        ([2.0, 2.5], (2.0, 2.5)),
        ([1.0, 5.0], (0.0, 5.0)),  # zero is near enough to show
        ([-1.0, 3.0], (-1.0, 3.0)),
        ([7.0], (6.5, 7.5)),
        ([], (0.0, 1.0)),
    ],
)
def test_the_range_drawn_is_the_values_own_or_that_of_shares(values, expected):
    assert bounds(values) == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 1.0, [0.0, 0.25, 0.5, 0.75, 1.0]),
        (0.0, 7.0, [0.0, 2.0, 4.0, 6.0, 8.0]),
        (-0.3, 0.1, [-0.3, -0.2, -0.1, 0.0, 0.1]),
        (1.7, 2.5, [1.6, 1.8, 2.0, 2.2, 2.4, 2.6]),
    ],
)
def test_ticks_are_round_and_reach_around_the_values(low, high, expected):
    assert nice_ticks(low, high) == pytest.approx(expected, **CLOSE)


def drawn(*points: Any, **more: Any):
    return plot([Series("line", points, 0, **more)], Axis.of({"s": 10}, {}))


def test_a_line_goes_through_its_points():
    found = drawn(point("s", 5, [0.5]), point("s", 0, [0.0]), point("s", 10, [1.0]))
    [line] = found.lines
    assert line.path == "M0 1000L500 500L1000 0"  # by iteration; the top of the plot is 0
    assert [(dot.x, dot.y) for dot in line.dots] == [(0.0, 100.0), (50.0, 50.0), (100.0, 0.0)]
    assert (line.band, line.thin, line.single) == ("", (), False)
    assert [tick.text for tick in found.y_ticks] == ["0.00", "0.25", "0.50", "0.75", "1.00"]
    assert [(tick.at, tick.text) for tick in found.x_ticks][0::5] == [(0.0, "0"), (100.0, "10")]


def test_a_band_goes_along_the_upper_edge_and_back_along_the_lower_one():
    # Values of two seeds: the band is from one to the other.
    [line] = drawn(point("s", 0, [0.25, 0.75]), point("s", 10, [0.5, 1.0])).lines
    assert line.band == "M0 250L1000 0L1000 500L0 750Z"
    assert line.thin == ("M0 750L1000 500", "M0 250L1000 0")


def test_a_band_is_cut_at_the_plot_s_border():
    [line] = drawn(point("s", 0, [0.9], errors=[0.5]), point("s", 10, [0.9], errors=[0.5])).lines
    assert line.band == "M0 0L1000 0L1000 1000L0 1000Z"


def test_a_single_point_is_no_line():
    [line] = drawn(point("s", 10, [0.5], errors=[0.1])).lines
    assert (line.single, line.band) == (True, "")


def test_small_figures_have_no_points():
    [line] = drawn(point("s", 0, [1.0]), point("s", 10, [2.0]), marks=False).lines
    assert line.dots == ()


def test_a_point_tells_its_place_value_and_interval():
    text = says("dev, sampled", point("reinforce", 10, [0.25, 0.75]))
    assert text == "dev, sampled, reinforce 10: 0.5 (0.25 to 0.75), 2 seeds"
    assert says("x", point("s", 0, [0.123456])) == "x, s 0: 0.1235"


def test_the_end_of_a_stage_has_no_label_of_its_own():
    found = plot([Series("x", [point("reinforce", 0, [1.0])], 0)], TWO)
    assert [tick.text for tick in found.x_ticks] == ["0", "0", "25", "50", "75", "100"]
    assert [border.text for border in found.borders] == ["imitate", "reinforce"]
