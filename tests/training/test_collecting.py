"""What leaves the batch, what stays in it without a loss, and what need not be computed."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from small import Quiet, collector, weights_after, weights_before

from agentrecipes.algorithms.grpo import GRPO
from agentrecipes.algorithms.protocol import Loss, Needs
from agentrecipes.errors import RunStopped
from agentrecipes.sampling.independent import Independent
from agentrecipes.training.collecting import Collector
from agentrecipes.training.position import Position, Sampler
from tolerances import EXACT, FLOAT32

GRPO_STAGE = ("stages.reinforce.algorithm.name=grpo", "stages.reinforce.iterations=1")


def micros(iteration):
    return [micro for step in iteration.steps for micro in step if not micro.empty]


@pytest.mark.parametrize("missing", ["drop", "mask"])
def test_masked_trajectories_count_and_dropped_ones_do_not(tmp_path, missing):
    reward = f"rewards=[{{name: spread, patchy: true, missing: {missing}}}]"
    made, fields, _ = collector(tmp_path, reward)
    iteration = made.iteration(fields, Position())
    known = [each for each in iteration.scored if each.total is not None]
    assert 0 < len(known) < len(iteration.scored)
    counted = known if missing == "drop" else iteration.scored
    tokens = sum(each.trajectory.policy_tokens for each in counted)
    batches = [micro.batch for micro in micros(iteration)]
    assert {batch.action_tokens for batch in batches} == {tokens}
    assert {batch.sequences for batch in batches} == {len(counted)}
    trained = sum(int(batch.action_mask.sum()) for batch in batches)
    assert trained == sum(each.trajectory.policy_tokens for each in known)
    for each, mean in zip(iteration.scored, iteration.advantage_means, strict=True):
        assert (mean is None) == (each.total is None)


def test_every_action_token_has_its_advantage_and_a_trajectory_their_mean(tmp_path):
    words = ("stages.reinforce.algorithm.name=ppo", "stages.reinforce.algorithm.gamma=0.5")
    made, fields, _ = collector(tmp_path, *words, "rewards=[spread]")
    iteration = made.iteration(fields, Position())
    several = 0
    for each, mean, by_turn in zip(
        iteration.scored, iteration.advantage_means, iteration.advantages, strict=True
    ):
        turns = each.trajectory.turns
        assert {turn: len(own) for turn, own in by_turn.items()} == {
            index: len(turn.action) for index, turn in enumerate(turns)
        }
        tokens = [value for own in by_turn.values() for value in own]
        several += len(set(tokens)) > 1
        torch.testing.assert_close(sum(tokens) / len(tokens), mean, **FLOAT32)
    assert several  # gamma makes a token's advantage smaller the earlier it is


def test_rows_without_advantage_are_left_out_and_still_count(tmp_path):
    made, fields, _ = collector(tmp_path, *GRPO_STAGE, "rewards=[{name: spread, half: true}]")
    iteration = made.iteration(fields, Position())
    dull = [mean == 0.0 for mean in iteration.advantage_means]
    assert 0 < sum(dull) < len(dull)
    batches = [micro.batch for micro in micros(iteration)]
    assert sum(len(batch.returns) for batch in batches) == len(dull) - sum(dull)
    tokens = sum(each.trajectory.policy_tokens for each in iteration.scored)
    assert {batch.action_tokens for batch in batches} == {tokens}
    assert {batch.sequences for batch in batches} == {len(dull)}


@pytest.mark.parametrize("budget", [1, 300, 100000])
def test_both_of_a_pair_are_in_one_micro_batch(tmp_path, budget):
    words = ("stages.reinforce.algorithm.name=dpo", "rewards=[spread]")
    words += ("stages.reinforce.trainer.minibatches=3", f"trainer.tokens_per_batch={budget}")
    made, fields, _ = collector(tmp_path, *words)
    iteration = made.iteration(fields, Position())
    best, worst = 0, 0
    for micro in micros(iteration):
        side = micro.batch.advantage.sum(dim=1)
        group = micro.batch.group[micro.batch.trajectory]
        assert sorted(group[side > 0].tolist()) == sorted(group[side < 0].tolist())
        best, worst = best + int((side > 0).sum()), worst + int((side < 0).sum())
    assert best == worst == fields.rollout.tasks
    assert len(micros(iteration)) == (4 if budget == 1 else 3)


class Thorough(GRPO):
    """GRPO that has every row computed, and is GRPO otherwise."""

    @property
    def needs(self) -> Needs:
        return replace(super().needs, every_row=True)


@pytest.mark.parametrize(
    "more", [(), ("stages.reinforce.trainer.minibatches=2", "stages.reinforce.trainer.epochs=2")]
)
def test_weights_are_the_same_with_and_without_rows_that_have_no_advantage(tmp_path, more):
    common = (
        *GRPO_STAGE,
        *more,
        "rewards=[{name: spread, half: true}]",
        "stages.reinforce.optimizer.learning_rate=10",
        "trainer.tokens_per_batch=300",
    )
    one, other = Quiet(), Quiet()
    short = weights_after(tmp_path / "short", *common, observer=one)
    whole = weights_after(tmp_path / "whole", *common, algorithm=Thorough(), observer=other)
    rows = [sum(len(m.batch.action_mask) for m in micros(o.iterations[0])) for o in (one, other)]
    assert rows[0] < rows[1]
    start = weights_before(tmp_path / "start", *common)
    assert max(float((whole[name] - tensor).abs().max()) for name, tensor in start.items()) > 1e-3
    for name, tensor in whole.items():
        torch.testing.assert_close(short[name], tensor, **FLOAT32, msg=name)


def test_groups_that_are_collected_again_are_counted_and_the_limit_ends_it(tmp_path):
    words = ("rewards=[constant]", "stages.reinforce.rollout.sampling={name: dynamic, limit: 3}")
    made, fields, _ = collector(tmp_path, *GRPO_STAGE, *words)
    iteration = made.iteration(fields, Position())
    assert iteration.refills == (4, 4)  # four tasks, and three rounds of collection
    assert len(iteration.scored) == 16
    assert not micros(iteration)


class Endless(Independent):
    """A sampling that is never content."""

    part_name = "endless"

    def refill(self, groups, rounds):
        return [0]


def test_a_sampling_without_end_stops_the_run(tmp_path):
    _, fields, run = collector(tmp_path, *GRPO_STAGE, "rewards=[spread]")
    rollout = fields.rollout.model_copy(update={"sampling": Endless()})
    engine = rollout.engine.start(run.policy.module.model, run.policy.tokenizer)
    sampler = Sampler(engine, run.policy.chat, 7, fields.name)
    made = Collector(sampler, run.policy.module, torch.no_grad, most_rounds=3)
    with pytest.raises(RunStopped, match="'endless' still wants other groups after 3 rounds"):
        made.iteration(fields.model_copy(update={"rollout": rollout}), Position())


class Broken(GRPO):
    """GRPO whose loss is infinite, with a finite gradient."""

    def loss(self, outputs, batch):
        loss = super().loss(outputs, batch)
        return Loss(loss.total + math.inf, loss.terms)


def test_a_step_whose_loss_is_not_finite_is_skipped_and_counted(tmp_path):
    observer = Quiet()
    common = (*GRPO_STAGE, "stages.reinforce.optimizer.learning_rate=10")
    after = weights_after(tmp_path / "run", *common, algorithm=Broken(), observer=observer)
    assert micros(observer.iterations[0])
    assert observer.figures[0]["loss/skipped_steps"] == 1.0
    for name, tensor in weights_before(tmp_path / "start", *common).items():
        torch.testing.assert_close(after[name], tensor, **EXACT, msg=name)


def test_an_iteration_without_signal_is_a_counted_no_op_weight_decay_included(tmp_path):
    observer = Quiet()
    common = (
        *GRPO_STAGE,
        "rewards=[constant]",
        "stages.reinforce.optimizer.weight_decay=0.5",
        "stages.reinforce.optimizer.learning_rate=0.1",
    )
    after = weights_after(tmp_path / "run", *common, observer=observer)
    assert not micros(observer.iterations[0])
    assert observer.figures[0]["loss/skipped_steps"] == 1.0
    for name, tensor in weights_before(tmp_path / "start", *common).items():
        torch.testing.assert_close(after[name], tensor, **EXACT, msg=name)


@pytest.mark.parametrize(
    "terms", ["entropy: 0.01", "kl: {place: loss}", "kl: {place: reward, target: 0.1}"]
)
def test_what_weighs_every_token_leaves_no_row_out(tmp_path, terms):
    made, fields, _ = collector(
        tmp_path,
        f"stages.reinforce.algorithm={{name: grpo, {terms}}}",
        "rewards=[{name: spread, half: true}]",
    )
    batches = [micro.batch for micro in micros(made.iteration(fields, Position()))]
    assert sum(len(batch.returns) for batch in batches) == 16


@pytest.mark.parametrize(("minibatches", "epochs"), [(1, 1), (2, 1), (1, 2)])
def test_only_a_single_step_takes_its_ratio_for_one(tmp_path, minibatches, epochs):
    made, fields, _ = collector(
        tmp_path,
        *(
            f"stages.reinforce.trainer.{name}={count}"
            for name, count in (("minibatches", minibatches), ("epochs", epochs))
        ),
    )
    found = {micro.exact for micro in micros(made.iteration(fields, Position()))}
    assert found == {minibatches == epochs == 1}
