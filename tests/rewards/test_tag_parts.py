"""Rewards that look at tags, and the smaller parts that published rewards are made of."""

from __future__ import annotations

import math

import pytest
from tests.rewards.views import played

from agentrecipes.components import build
from agentrecipes.rewards import tags


def score(name, view, **fields: object):
    return build("reward", {"name": name, **fields}).score(view)


@pytest.mark.parametrize(
    ("text", "paired"),
    [
        ("<a> x </a> y <a></a>", True),
        ("", False),
        ("<a>", False),
        ("</a><a>", False),
        ("<a><a></a></a>", False),
        ("<a></a></a>", False),
    ],
)
def test_tags_are_paired_if_they_open_and_close_in_turn(text, paired):
    assert tags.is_paired(text, "a") is paired


def test_rules_hold_together_or_not_at_all():
    view = played(
        ("<think> a </think> <search> q </search>", "r", ()), ("<think> b </think>", "", ())
    )
    assert (
        score("tag_rules", view, paired=["think"], once=["search"], counts={"think": [2, 2]}) == 1
    )
    assert score("tag_rules", view, paired=["think"], once=["think"]) == 0
    assert score("tag_rules", view, counts={"search": [2, 3]}) == 0
    assert score("tag_rules", view, counts={"match": [0, 1]}) == 1
    assert score("tag_rules", view, observed=["search", "think"]) == 0  # the last turn drew nothing


def test_rules_that_are_none_or_cannot_hold_are_problems():
    empty, never = (
        build("reward", {"name": "tag_rules", **fields})
        for fields in ({}, {"counts": {"a": [3, 1]}})
    )
    assert [problem.code for problem in empty.rules(None)] == ["missing_key"]
    [problem] = never.rules(None)
    assert (problem.code, problem.path) == ("contradiction", "counts.a")


def test_points_have_no_lower_bound_where_searches_cost():
    assert build("reward", "tag_points").range == (-math.inf, pytest.approx(2.2))
    free = build("reward", {"name": "tag_points", "pair": 0, "present": []})
    assert free.range == (0.0, 0.4)


def test_a_thought_that_the_template_opens_counts_as_opened():
    view = played((" t </think> <answer> Rome </answer>", "", ()))
    assert score("format_blocks", view) == 0.0
    assert score("format_blocks", view, thought_is_open=True) == 0.5


def test_the_share_of_tools_is_over_those_that_are_wanted():
    view = played(("<python> 1 </python>", "", ["search", "search"]), ("<search>", "", ["add"]))
    assert score("tools_used", view, tools=["search", "python"]) == 0.5
    assert score("tools_used", view, tools=["python"], by="tags") == 1.0
    assert score("tools_used", view, tools=["search"], by="tags") == 0.0


def test_a_given_number_is_read_and_anything_else_is_null():
    assert score("given", played(right=True), field="right") == 1.0
    assert score("given", played(right=0.25), field="right") == 0.25
    for nothing in ("yes", None, math.nan, [1]):
        assert score("given", played(right=nothing), field="right") is None
    assert score("given", played(), field="right") is None


def test_words_are_compared_without_one_final_s():
    view = played(("x", "", ()), golds=["Viral Diseases"], answer="disease, bacterial")
    assert score("token_recall", view) == 0.5
    assert score("token_recall", played(("x", "", ())), of="answer") == 0.0
    assert score("token_recall", played(golds=["the"])) is None


def test_of_two_look_ups_in_one_turn_each_counts():
    twice = "<match> a, b </match> <match> c, d </match>"
    assert score("referral", played((twice, "Paris", ()))) == 0.2
    assert score("referral", played((twice, "Rome; Paris", ()))) == 1.0
    assert score("referral", played((twice, "Rome", ()), golds=[])) is None


def test_a_gold_answer_is_looked_for_where_the_recipe_says():
    view = played(("<answer> Rome </answer>", "", ()), ("Rome? <answer> Bern </answer>", "", ()))
    found = {of: score("substring_match", view, of=of) for of in ("answer", "tag", "turn")}
    assert found == {"answer": 0.0, "tag": 0.0, "turn": 1.0}
