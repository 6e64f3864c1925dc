from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentrecipes.cli.curve import curve, strip


def test_a_straight_line_fills_half_of_every_column_it_should():
    # Width 9 leaves 9 - 4 ("1.00") - 2 = 3 columns, at x = 0, 1, 2 with scores 0, 0.5, 1. Two rows
    # of 8 eighths: the scores are 0, 8 and 16 eighths, so full blocks stand 0, 1 and 2 high.
    assert curve([(0, 0.0), (2, 1.0)], title="t", width=9, height=2).splitlines() == [
        "t",
        "1.00 │  █",
        "0.50 │ ██",
        "0.00 └───",
        "      0iteration 2",
    ]


def test_a_quarter_of_a_row_is_two_eighths():
    # One row: 0.25 is 2 of 8 eighths in every column.
    lines = curve([(0, 0.25), (1, 0.25)], title="t", width=9, height=1).splitlines()
    assert lines[1] == "1.00 │▂▂▂"


def test_scores_outside_zero_and_one_set_their_own_axis():
    lines = curve([(0, -2.0), (10, 6.0)], title="t").splitlines()
    assert lines[1].startswith(" 6.00 │")
    assert lines[-2].startswith("-2.00 └")


def test_equal_scores_outside_zero_and_one_are_drawn_in_the_middle():
    lines = curve([(0, 7.0), (10, 7.0)], title="t", height=2).splitlines()
    assert lines[1].strip() == "7.50 │"  # nothing in the upper row
    assert lines[2].count("█") == 80 - len("7.50") - 2


def test_less_than_two_points_draw_nothing():
    assert curve([], title="t") == ""
    assert curve([(3, 0.5)], title="t") == ""
    assert curve([(3, 0.5), (3, 0.7)], title="t") == ""
    assert curve([(0, 0.5), (1, float("nan"))], title="t") == ""


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=10))
def test_every_line_fits_in_eighty_columns(scores):
    text = curve(list(enumerate(scores)), title="score")
    assert max(map(len, text.splitlines())) <= 80


def test_a_strip_has_a_column_for_what_falls_into_it():
    # Four values in two columns: their means 0.25 and 0.5 are 4 and 8 eighths of the top, 0.5.
    assert strip([0.0, 0.5, 0.5, 0.5], top=0.5, width=2) == "▄█"
    assert strip([0.0, 0.001, 0.5], top=0.5, width=9) == " ▁█"
