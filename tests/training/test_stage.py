"""Stages as Lightning runs them: fresh batches, losses equal however they are split."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from small import Quiet, collector, experiment, small, weights_after, weights_before

from agentrecipes.experiment import run as run_experiment
from agentrecipes.training import stage as stage_module
from agentrecipes.training.batch import MicroBatch
from agentrecipes.training.module import PolicyModule
from agentrecipes.training.position import Position
from tolerances import FLOAT32


class Versions:
    """Remembers the policy version of each batch that the module trained on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[int, int]] = []
        plain = PolicyModule.training_step

        def step(module: PolicyModule, micro: MicroBatch, index: int) -> torch.Tensor:
            if not micro.empty:
                self.seen.append((module.trainer.current_epoch, micro.policy_version))
            return plain(module, micro, index)

        monkeypatch.setattr(PolicyModule, "training_step", step)


def test_batches_are_never_stale(tmp_path, monkeypatch):
    versions = Versions(monkeypatch)
    recipe = small("stages.imitate.steps=1")
    run_experiment(experiment(recipe, tmp_path / "run"))
    collected = versions.seen[1:]  # the first is imitation's only step
    # Imitation ends with version 1; epoch e of the collecting stage trains on version 1 + e.
    assert collected == [(epoch, epoch + 1) for epoch, _ in collected]
    assert {epoch for epoch, _ in collected} == {0, 1, 2}


@pytest.mark.parametrize("algorithm", ["ppo", "grpo", "dpo"])
def test_the_update_does_not_depend_on_the_number_of_micro_batches(tmp_path, algorithm):
    common = (
        f"stages.reinforce.algorithm.name={algorithm}",
        "stages.reinforce.iterations=1",
        "stages.reinforce.optimizer.learning_rate=10",
    )
    start, observer = weights_before(tmp_path / "start", *common), Quiet()
    whole = weights_after(
        tmp_path / "one", *common, "trainer.tokens_per_batch=100000", observer=observer
    )
    assert observer.figures[0].get("loss/skipped_steps", 0.0) == 0.0
    split = weights_after(tmp_path / "many", *common, "trainer.tokens_per_batch=300")
    moved = max(float((whole[name] - tensor).abs().max()) for name, tensor in start.items())
    assert moved > 1e-4  # otherwise nothing was compared
    for name, tensor in whole.items():
        torch.testing.assert_close(split[name], tensor, **FLOAT32, msg=name)


def test_constant_rewards_move_nothing_with_grpo(tmp_path):
    run = experiment(
        small("rewards=[constant]", "stages.reinforce.algorithm.name=grpo"), tmp_path / "run"
    )
    before: dict[str, torch.Tensor] = {}
    plain = stage_module.StageRun.run

    def keep(self: Any, position: Position) -> Position:
        if self.fields.name == "reinforce":
            before.update({k: v.clone() for k, v in run.policy.module.model.state_dict().items()})
        return plain(self, position)

    stage_module.StageRun.run, original = keep, plain
    try:
        run_experiment(run)
    finally:
        stage_module.StageRun.run = original
    after = run.policy.module.model.state_dict()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
    assert before


def test_a_collected_iteration_holds_every_sampled_token_once(tmp_path):
    made, fields, _ = collector(tmp_path)
    collected = made.iteration(fields, Position(policy_version=3))
    micros = [micro for step in collected.steps for micro in step if not micro.empty]
    trained = sum(int(micro.batch.action_mask.sum()) for micro in micros)
    assert trained == sum(each.trajectory.policy_tokens for each in collected.scored)
    assert {micro.policy_version for micro in micros} == {3}
    assert all(micro.batch.action_tokens == trained for micro in micros)


def test_the_trainer_gives_the_log_probabilities_that_the_sampler_reported(tmp_path):
    made, fields, run = collector(tmp_path)
    collected = made.iteration(fields, Position())
    for micro in (m for step in collected.steps for m in step if not m.empty):
        logp = run.policy.module(micro.strip).logp.detach()
        gap = torch.where(micro.batch.action_mask, logp - micro.batch.logp_rollout, 0.0)
        assert float(gap.abs().max()) < 1e-4


def test_a_group_is_asked_the_same_question_and_samples_different_answers(tmp_path):
    made, fields, _ = collector(tmp_path)
    collected = made.iteration(fields, Position())
    groups: dict[str, list] = {}
    for each in collected.scored:
        groups.setdefault(each.trajectory.group, []).append(each.trajectory)
    assert {len(own) for own in groups.values()} == {fields.rollout.group_size}
    for own in groups.values():
        assert len({trajectory.task.question for trajectory in own}) == 1
        assert len({trajectory.turns[0].action for trajectory in own}) > 1


def test_the_same_position_collects_the_same_tokens(tmp_path):
    first, fields, _ = collector(tmp_path / "a")
    again, _, _ = collector(tmp_path / "b")
    one = first.iteration(fields, Position(iteration=2))
    two = again.iteration(fields, Position(iteration=2))
    actions = [[turn.action for turn in s.trajectory.turns] for s in one.scored]
    assert actions == [[turn.action for turn in s.trajectory.turns] for s in two.scored]


def test_minibatches_split_the_trajectories_and_epochs_repeat_them(tmp_path):
    made, fields, _ = collector(
        tmp_path, "stages.reinforce.trainer.minibatches=2", "stages.reinforce.trainer.epochs=2"
    )
    collected = made.iteration(fields, Position())
    assert len(collected.steps) == 4
    tokens = [
        sum(int(micro.batch.action_mask.sum()) for micro in step if not micro.empty)
        for step in collected.steps
    ]
    assert tokens[:2] == tokens[2:]
    assert sum(tokens[:2]) == sum(each.trajectory.policy_tokens for each in collected.scored)
    # the denominator is the step's own, not the iteration's
    for step, total in zip(collected.steps, tokens, strict=True):
        assert {micro.batch.action_tokens for micro in step if not micro.empty} == {total}


def test_every_optimizer_step_has_the_same_number_of_micro_batches(tmp_path):
    made, fields, _ = collector(tmp_path, "trainer.tokens_per_batch=300")
    collected = made.iteration(fields, Position())
    assert {len(step) for step in collected.steps} == {stage_module.step_batches(fields)}


def test_a_gradient_that_is_not_finite_moves_nothing(tmp_path):
    run = experiment(small(), tmp_path / "run")
    module = run.policy.module
    run.policy.prepare(run.recipe.stage(0), tmp_path / "reference.pt")
    module._empty = False
    for parameter in module.parameters():
        parameter.grad = torch.full_like(parameter, float("nan"))
    before = {name: tensor.clone() for name, tensor in module.model.state_dict().items()}
    module.configure_gradient_clipping(module.optimizer, 1.0)
    module.optimizer.step()
    assert all(torch.equal(module.model.state_dict()[n], t) for n, t in before.items())
    assert module.terms["loss/skipped_steps"] == 1.0


def test_a_filler_weighs_nothing(tmp_path):
    made, fields, run = collector(tmp_path)
    collected = made.iteration(fields, Position())
    [micro] = [m for m in collected.steps[0] if not m.empty][:1]
    filler = replace(micro, empty=True)
    loss = run.policy.module(filler.strip).logp.sum() * 0.0
    loss.backward()
    assert all(float(p.grad.abs().max()) == 0.0 for p in run.policy.module.model.parameters())
