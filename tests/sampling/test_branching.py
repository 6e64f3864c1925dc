"""Where attempts branch off, and how many do."""

from __future__ import annotations

from dataclasses import replace
from math import e

import pytest
from tests.tracking.made import scored, turn

from agentrecipes.records import Task
from agentrecipes.sampling.branching import Branching, branch_probability
from agentrecipes.sampling.protocol import Branch, Group, Plan

CALL = turn((1,), (7, 8), (5,))
ANSWER = turn((1, 7, 8, 5), (9,))
ALWAYS = Branching(initial=2, base=1.0)


def attempts(*turns: object, **more: object) -> Group:
    """A group whose attempts have these turns."""
    made = [scored("t", number, turns=own) for number, own in enumerate(turns)]
    values = {"seen": 0, "size": 8, "words": 50_000, "key": (7, "rl", 0)}
    return Group(tuple(made), **{**values, **more})


@pytest.mark.parametrize(
    ("change", "probability"), [(-1.0, 0.3), (0.0, 0.5), (1.0, 0.7), (3.0, 1.0), (-3.0, 0.0)]
)
def test_the_probability_of_a_branch_is_that_of_arpos_code(change, probability):
    assert branch_probability(change) == pytest.approx(probability, abs=1e-12)


def test_the_initial_attempts_are_planned_and_room_is_kept_for_the_others():
    task = Task("t", "train", "?")
    assert Branching(initial=3).plan([task], 8) == [Plan(task, 3, room=8)]


def test_branches_begin_behind_calls_that_are_not_the_last_turn():
    group = attempts((CALL, CALL, ANSWER), (ANSWER,), (CALL,))
    assert ALWAYS.branch(group) == [Branch(0, 1), Branch(0, 2)]


def test_the_earliest_turns_come_first_and_the_budget_ends_it():
    group = attempts((CALL, CALL, ANSWER), (CALL, CALL, ANSWER), size=5)
    assert ALWAYS.branch(group) == [Branch(0, 1), Branch(1, 1), Branch(0, 2)]
    wide = Branching(initial=2, base=1.0, width=3)
    assert wide.branch(group) == [Branch(0, 1), Branch(0, 1), Branch(1, 1)]
    assert ALWAYS.branch(replace(group, size=2)) == []


def test_what_was_looked_at_does_not_branch_again_and_taken_turns_do_not():
    group = attempts((CALL, ANSWER), (CALL, CALL, ANSWER))
    taken = replace(group.attempts[1].trajectory, taken_turns=1)
    second = replace(group.attempts[1], trajectory=taken)
    grown = replace(group, attempts=(group.attempts[0], second))
    assert ALWAYS.branch(grown) == [Branch(0, 1), Branch(1, 2)]
    assert ALWAYS.branch(replace(grown, seen=1)) == [Branch(1, 2)]


def test_without_a_branch_the_group_is_filled_from_the_prompt_on():
    group = attempts((CALL, ANSWER), size=4)
    assert Branching(initial=1, base=0.0, weight=0.0).branch(group) == [Branch()] * 3


def test_a_branch_is_likelier_the_less_sure_the_turn_was():
    # Divided by the logarithm of e² words the entropies are 1 and 2: a change of 1.
    surer = replace(CALL, logp_rollout=(-1.0, -1.0))
    unsure = replace(CALL, logp_rollout=(-2.0, -2.0))
    rows = [(surer, unsure, ANSWER)] * 2000
    group = attempts(*rows, size=10**6, words=e**2)
    found = Branching(initial=2, weight=0.2).branch(group)
    by_turns = [sum(each.turns == number for each in found) for number in (1, 2)]
    assert by_turns[0] == pytest.approx(0.5 * 2000, abs=5 * 22.4)  # 5 standard deviations
    assert by_turns[1] == pytest.approx(0.7 * 2000, abs=5 * 20.5)
    half = Branching(initial=2, weight=0.4, tokens=1).branch(group)
    assert sum(each.turns == 2 for each in half) == pytest.approx(0.7 * 2000, abs=5 * 20.5)
    double = Branching(initial=2, weight=0.4).branch(group)
    assert sum(each.turns == 2 for each in double) == pytest.approx(0.9 * 2000, abs=5 * 13.4)


def test_a_draw_does_not_depend_on_the_other_attempts():
    group = attempts(*[(CALL, CALL, ANSWER)] * 8, size=100)
    found = {(each.attempt, each.turns) for each in Branching().branch(group)}
    later = {(each.attempt, each.turns) for each in Branching().branch(replace(group, seen=4))}
    assert later == {each for each in found if each[0] >= 4}
    assert 0 < len(later) < 8
