"""What the losses see of trajectories: masks, denominators, states, and what need not be seen."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from makers import trajectory, turn

from agentrecipes.components import build, names
from agentrecipes.records import Scored, Trajectory
from agentrecipes.training.batch import collected_batch, computed, denominators, take
from agentrecipes.training.rows import trajectory_rows

FORKED = trajectory(turn([1, 2], [7, 8], [5]), turn([3, 4], [9], [6]))  # 2 rows, 3 action tokens
PLAIN = trajectory(turn([1, 2], [7], [5]), turn([1, 2, 7, 5], [8, 9]), attempt=1)  # 1 row, 3 tokens
MUTE = trajectory(turn([1, 2], []), attempt=2)  # a prompt without an action


def scored(one: Trajectory, total: float | None = 1.0, *, masked: bool = False) -> Scored:
    per_turn = () if total is None else (0.0,) * (len(one.turns) - 1) + (total,)
    return Scored(one, {}, total, per_turn, masked)


def batch_of(*every: Scored):
    return collected_batch(trajectory_rows([each.trajectory for each in every]), every, 0.0)


def said(one: Trajectory, *texts: str) -> Trajectory:
    """The trajectory with observations that read `texts`."""
    turns = [replace(own, observation_text=t) for own, t in zip(one.turns, texts, strict=True)]
    return replace(one, turns=tuple(turns))


def test_denominators_count_tokens_trajectories_and_turns_over_all_rows():
    # FORKED: 2 + 1 tokens in 2 turns; PLAIN: 1 + 2 in 2 turns; MUTE acts in no turn.
    batch = batch_of(scored(FORKED), scored(PLAIN), scored(MUTE))
    assert (batch.action_tokens, batch.sequences, batch.turns) == (6.0, 2.0, 4.0)
    assert batch.returns.tolist() == [1.0, 1.0, 1.0]


def test_denominators_of_a_step_are_those_of_its_rows():
    rows = trajectory_rows([FORKED, PLAIN])
    assert denominators(rows[2:]) == (3.0, 1.0, 2.0)
    assert denominators(rows[1:]) == (4.0, 2.0, 3.0)


@pytest.mark.parametrize(("total", "masked"), [(None, True), (math.inf, False), (math.nan, False)])
def test_a_trajectory_without_a_number_counts_and_has_no_loss(total, masked):
    batch = batch_of(scored(FORKED), scored(PLAIN, total, masked=masked))
    whole = batch_of(scored(FORKED), scored(PLAIN))
    assert not batch.action_mask[2].any()
    assert torch.equal(batch.action_mask[:2], whole.action_mask[:2])
    assert not batch.logp_rollout[2].any()
    assert set(batch.turn_index[2].tolist()) == {-1}
    for name in ("action_tokens", "sequences", "turns"):
        assert getattr(batch, name) == getattr(whole, name)


COLLECTING = [n for n in names("algorithm") if not build("algorithm", n).needs.demonstrations]


@pytest.mark.parametrize("name", COLLECTING)
def test_a_batch_of_masked_trajectories_alone_gives_zeros(name):
    batch = batch_of(scored(FORKED, None, masked=True), scored(PLAIN, None, masked=True))
    shape = batch.action_mask.shape
    batch = replace(batch, logp_ref=torch.zeros(shape), values_old=torch.zeros(shape))
    part = build("algorithm", name)
    assert torch.equal(part.advantages(batch), torch.zeros(shape))
    assert not part.value_targets(batch).any()
    assert not any(computed(batch, every_row=True))


def test_states_are_equal_where_the_same_was_seen_before_the_turn():
    # Before the turns of the first: the opening, "a". Of the second: the opening, "b", "a".
    first = said(trajectory(turn([1], [7]), turn([1, 7], [8])), "a", "one end")
    second = said(
        trajectory(turn([1], [9]), turn([1, 9], [8]), turn([1, 9, 8], [7]), attempt=1),
        *("b", "a", "another end"),
    )
    other = said(trajectory(turn([1], [7]), turn([1, 7], [8]), group="h"), "a", "end")
    states = batch_of(scored(first), scored(second), scored(other)).turn_state.tolist()
    assert states[0][2] == states[2][2] == -1  # beyond their turns
    opening, after_a = states[0][:2]
    assert opening != after_a
    assert (states[1][0], states[1][2]) == (opening, after_a)
    assert states[1][1] not in (opening, after_a, -1)


def test_an_empty_observation_is_not_the_opening():
    [[opening, after]] = batch_of(
        scored(said(trajectory(turn([1], [7]), turn([1, 7], [8])), "", "end"))
    ).turn_state.tolist()
    assert opening != after


def test_a_micro_batch_keeps_the_states_of_its_own_trajectories():
    longer = trajectory(turn([1], [7]), turn([1, 7], [8]), turn([1, 7, 8], [9]), attempt=1)
    batch = batch_of(scored(FORKED), scored(longer))
    part = take(batch, [2], 4)
    assert part.trajectory.tolist() == [0]  # in the micro-batch's own numbers
    assert part.turn_state.tolist() == batch.turn_state[1:].tolist()
    assert part.turn_rewards.tolist() == [[0.0, 0.0, 1.0]]
    assert part.turns == batch.turns == 5.0


def test_rows_without_advantage_are_left_out_by_whole_trajectories():
    batch = batch_of(scored(FORKED), scored(PLAIN))
    assert computed(batch, every_row=True) == [True, True, True]
    advantage = torch.zeros(batch.action_mask.shape)
    advantage[1, 2] = -0.5  # in the second row of the trajectory that forked
    assert computed(replace(batch, advantage=advantage), every_row=False) == [True, True, False]


def test_an_advantage_that_is_no_number_is_not_left_out():
    batch = batch_of(scored(PLAIN))
    advantage = torch.where(batch.action_mask, torch.nan, 0.0)
    assert computed(replace(batch, advantage=advantage), every_row=False) == [True]
