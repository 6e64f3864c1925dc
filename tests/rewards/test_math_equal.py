"""Answers that are equal as quantities, and those that are not."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rewards.views import asked

from agentrecipes.rewards.math_equal import MathEqual
from agentrecipes.rewards.quantities import boxed, items, number, plainest

EQUAL = [
    ("42", "42.0"),
    ("1,234,567", "1234567"),
    ("1/2", r"\frac{1}{2}"),
    (r"\dfrac{3}{4}", "0.75"),
    (r"\frac34", "6/8"),
    (r"\frac1{20}", r"\tfrac{1}{20}"),
    (r"-\frac{1}{3}", "-1/3"),
    (r"\frac{-1}{3}", r"-\frac{1}{3}"),
    (".5", "0.5"),
    ("$1.50", "1.5"),
    (r"50\%", "50"),
    (r"90^\circ", "90"),
    ("12 \\text{ cm}", "12"),
    ("7.", "7"),
    ("1.2e3", "1200"),
    (r"3 \times 10^{-2}", "0.03"),
    (r"The sum is \boxed{\frac{1}{4}}.", "0.25"),
    (r"\left(\frac{1}{2}, 3\right)", "(0.5,3.0)"),
    (r"\{3, 1/2\}", r"\{0.5,3\}"),
    ("[0, 1)", "[0.0,1)"),
    (r"x + \sqrt{2}", r"x+\sqrt{2}"),
    ("−3", "-3"),
]
UNEQUAL = [
    ("42", "43"),
    ("0.333", "1/3"),
    ("1234", "1,23,4"),
    ("1/0", "0"),
    ("(1,2)", "(2,1)"),  # a pair is ordered
    ("(1,2)", "[1,2]"),  # an interval without its ends is another one
    ("(1,2)", "(1,2,3)"),
    ("(1,234)", "1234"),  # in brackets a comma separates
    ("x+1", "1+x"),  # nothing is evaluated
    ("2^3", "8"),
    ("1e999999999", "1"),  # read as text: no number that large is built
    ("__import__('os')", "0"),
    ("", "0"),
    (None, "0"),
]


@pytest.mark.parametrize(("answer", "gold"), EQUAL)
def test_what_is_written_differently_is_equal_both_ways(answer, gold):
    assert MathEqual().score(asked("-999", gold, answer=answer)) == 1.0
    assert MathEqual().score(asked(answer, answer=gold)) == 1.0


@pytest.mark.parametrize(("answer", "gold"), UNEQUAL)
def test_what_is_another_quantity_or_cannot_be_compared_is_not_equal(answer, gold):
    assert MathEqual().score(asked(gold, answer=answer)) == 0.0


def test_the_last_closed_box_counts_and_braces_inside_it():
    assert boxed(r"\boxed{1} then \boxed{\frac{2}{3}} and \boxed{4") == r"\frac{2}{3}"
    assert boxed("no box") == "no box"


def test_a_tolerance_is_relative_to_the_gold_answer():
    # |0.333 - 1/3| / (1/3) = 0.001
    assert MathEqual(tolerance=0.0011).score(asked("1/3", answer="0.333")) == 1.0
    assert MathEqual(tolerance=0.0009).score(asked("1/3", answer="0.333")) == 0.0
    assert MathEqual(tolerance=0.5).score(asked("0", answer="0.001")) == 0.0


def test_a_list_is_read_with_its_brackets():
    assert items("(1,2]") == ("(]", ["1", "2"])
    assert items("(12)") is None
    assert items(r"\{a,b\}") == ("\\{\\}", ["a", "b"])


@given(st.fractions(max_denominator=10_000))
def test_a_fraction_is_read_as_what_it_is(value):
    one = rf"\frac{{{value.numerator}}}{{{value.denominator}}}"
    assert number(plainest(one)) == value
    assert number(f"{value.numerator}/{value.denominator}") == value


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6))
def test_a_decimal_is_read_exactly(value):
    assert number(f"{value:f}") == Fraction(value)


@given(st.text(r"\frac{}()[],.0123456789e+-/^ \times", max_size=40))
def test_no_text_raises_and_every_text_equals_itself(text):
    if plainest(boxed(text)):
        assert MathEqual().score(asked(text, answer=text)) == 1.0
