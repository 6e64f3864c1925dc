"""Demonstrations that take steps back and sum up what they know."""

from __future__ import annotations

import pytest

from agentrecipes.components import build
from agentrecipes.demonstrations.scripted import Scripted

WORLD = {"name": "world", "train": 60, "dev": 5, "test": 5, "chains": [1, 2], "conjunctions": [2]}
NO_FAULTS = dict.fromkeys(
    ("stop_chain", "stop_conjunction", "lazy_query", "wrong_passage", "wrong_relation"), 0.0
)


def drawn(seed=1, **fields: float):
    parts = {"dataset": WORLD, "protocol": "stack", "context": {"policy": "stack"}}
    retriever = {"name": "bm25", "top_k": 1}
    world = build(
        "environment", {"name": "search", "max_turns": 8, "retriever": retriever, **parts}
    )
    return Scripted(count=60, **{**NO_FAULTS, **fields}).draw(world, seed)


def acts(one):
    """The tag that ends each turn."""
    return [action.rsplit("</", 1)[1].removesuffix(">") for action, _ in one.turns]


def test_a_step_that_missed_is_taken_back_and_asked_again():
    lazy = drawn(lazy_query=0.5)
    edited = drawn(lazy_query=0.5, backtrack=1.0)
    share = [sum(one.correct for one in each) / 60 for each in (lazy, edited)]
    assert share[0] + 0.2 < share[1]
    assert sum("backtrack" in acts(one) for one in edited) > 10
    for one in edited:
        for turn, act in enumerate(acts(one)):
            if act == "backtrack":
                assert acts(one)[turn - 1 : turn + 2] in (
                    ["search", "backtrack", "search"],
                    ["search", "backtrack"],  # the turns were used up
                )
                assert (
                    turn - 1 not in (*one.shown[turn + 1],) if turn + 1 < len(one.turns) else True
                )


def test_without_faults_nothing_is_taken_back():
    for one in drawn(backtrack=1.0):
        assert set(acts(one)) <= {"search", "answer"}
        assert one.correct


def test_a_summary_says_what_was_found_and_is_enough_to_go_on():
    for one in drawn(summary=1.0):
        assert one.correct
        searches = acts(one).count("search")
        assert acts(one) == ["search", "summary"] * (searches - 1) + ["search", "answer"]
        for turn, act in enumerate(acts(one)):
            if act == "summary":
                said = one.turns[turn][0].split("<summary> ")[1].removesuffix(" </summary>")
                found = one.turns[turn - 1][1]
                assert said.split(" . ")[-1].removesuffix(" .") in found
                assert one.shown[turn + 1] == (turn,)


def test_under_other_names_a_demonstration_shows_the_same_turns():
    [one, *_] = drawn(summary=1.0)
    again = Scripted().restate(one, build("environment", {"name": "search", "dataset": WORLD}), 9)
    assert again.shown == one.shown
    assert again.turns != one.turns


@pytest.mark.parametrize("field", ["backtrack", "summary"])
def test_without_a_stack_nothing_is_edited_and_nothing_is_drawn_for_it(field):
    world = build("environment", {"name": "search", "dataset": WORLD})
    assert all(one.shown == () for one in Scripted(count=5).draw(world, 1))
    assert getattr(Scripted(), field) == 0.0
