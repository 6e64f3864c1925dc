"""Rewards → numbers: sums and turns by hand, and nothing that is silently zero."""

from collections import Counter
from typing import ClassVar

import pytest
from playground import play_texts

from agentrecipes.components import Component
from agentrecipes.errors import RunStopped
from agentrecipes.recipe.schema import RewardEntry
from agentrecipes.rewards.protocol import View
from agentrecipes.rollout.score import score, score_view


class Says(Component):
    """A reward that gives what it was made with."""

    kind: ClassVar[str] = "reward"
    part_name: ClassVar[str] = "says"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset()
    value: object = None

    def score(self, view):
        return self.value


class SaysByTurn(Says):
    """The same, of a part that says that it gives one value for each turn."""

    gives: ClassVar[str] = "turn"


TRAJECTORY, _ = play_texts("look door !", "say yes !")
VIEW = View.of(TRAJECTORY)


def entry(value, label="says", **fields: object):
    return RewardEntry(part=Says(value=value), **{"as": label, **fields})


def test_a_number_counts_on_the_last_turn_and_a_list_turn_by_turn():
    # a: 0.5 * 1.0 on the last turn; b: 2.0 * [0.25, -0.5]
    found = score_view(VIEW, [entry(1.0, "a", weight=0.5), entry([0.25, -0.5], "b", weight=2.0)])
    assert found.parts == {"a": 1.0, "b": -0.25}
    assert found.per_turn == (0.5, -0.5)
    assert found.total == 0.0
    assert found.problems == ()


def test_a_view_counts_what_the_policy_sampled_turn_by_turn():
    assert VIEW.tokens == tuple(len(turn.action) for turn in TRAJECTORY.turns) == (3, 3)
    length = RewardEntry(part={"name": "length", "max": 8, "buffer": 4})
    assert score_view(VIEW, [length]).total == -0.5  # six tokens, two beyond 8 - 4


def test_a_list_can_be_told_to_count_on_the_last_turn():
    part = SaysByTurn(value=[0.25, -0.5])
    whole = RewardEntry(part=part, scope="trajectory", **{"as": "whole"})
    by_turn = RewardEntry(part=part, weight=2.0)
    assert score_view(VIEW, [whole]).per_turn == (0.0, -0.25)
    assert score_view(VIEW, [whole, by_turn]).per_turn == (0.5, -1.25)
    assert score_view(VIEW, [whole, by_turn]).total == -0.75


def test_an_entry_spells_out_the_scope_of_a_part_that_says_what_it_gives():
    scopes = [RewardEntry(part=name).dump()["scope"] for name in ("progress", "exact_match")]
    assert scopes == ["turn", "trajectory"]
    assert entry(1.0).scope == "trajectory"
    assert RewardEntry(part="progress", scope="trajectory").scope == "trajectory"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "could not be computed"),
        (float("nan"), "gave nan, outside its range"),
        (1.5, "gave 1.5, outside its range [-1, 1]"),
        ([0.0, 2.0], "gave 2.0, outside"),
        ([0.0, None], "could not be computed on a turn"),
        ([0.0], "gave 1 values for 2 turns"),
    ],
)
def test_what_is_no_value_is_null_with_a_problem_and_never_zero(value, said):
    found = score_view(VIEW, [entry(1.0, "good"), entry(value, "bad")])
    assert found.parts == {"good": 1.0, "bad": None}
    assert (found.total, found.per_turn) == (None, ())
    [problem] = found.problems
    assert said in problem


def test_a_null_drops_masks_or_stops():
    dropped, masked = (
        score_view(VIEW, [entry(None, missing=missing)]) for missing in ("drop", "mask")
    )
    assert (dropped.total, dropped.masked) == (None, False)
    assert (masked.total, masked.masked) == (None, True)
    both = score_view(VIEW, [entry(None, "a", missing="mask"), entry(None, "b", missing="drop")])
    assert not both.masked
    with pytest.raises(RunStopped, match="missing: stop"):
        score_view(VIEW, [entry(None, missing="stop")])


def test_problems_are_counted_over_trajectories():
    problems = Counter()
    scored = score([TRAJECTORY] * 3, [entry(7.0), entry(0.5, "fine")], problems=problems)
    assert problems == {"says gave 7.0, outside its range [-1, 1]": 3}
    assert [each.trajectory for each in scored] == [TRAJECTORY] * 3
    assert scored[0].parts == {"says": None, "fine": 0.5}


def test_a_trajectory_without_turns_has_a_total_and_no_turn():
    void, _ = play_texts("say yes !", tokens=1)
    [scored] = score([void], [entry(0.5)])
    assert (scored.total, scored.per_turn) == (0.5, ())
