"""One RL iteration: pick tasks, collect, score, compute advantages once, pack.

Law 5: advantages are computed on the whole batch, before it is split; denominators are global.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from agentrecipes.numerics.streams import derive
from agentrecipes.recipe.schema import Stage
from agentrecipes.records import Batch, Scored
from agentrecipes.training import ranks
from agentrecipes.training.batch import (
    MicroBatch,
    collected_batch,
    computed,
    denominators,
    filled,
    filler,
    packed,
)
from agentrecipes.training.critic import centred
from agentrecipes.training.groups import MOST_ROUNDS, Groups
from agentrecipes.training.module import PolicyModule
from agentrecipes.training.pack import micro_batches
from agentrecipes.training.position import Position, Sampler
from agentrecipes.training.rows import Row, trajectory_rows
from agentrecipes.training.weighing import segmented

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Iteration:
    """What one collection gave: micro-batches by optimizer step, and what to record of it."""

    steps: tuple[tuple[MicroBatch, ...], ...]
    scored: tuple[Scored, ...]
    advantage_means: tuple[float | None, ...]  # null where nothing was trained
    results: Mapping[str, float]  # task id → mean total, for the curriculum
    refills: tuple[int, ...] = ()  # groups that were collected again, by round
    advantages: tuple[Mapping[int, list[float]], ...] = ()  # turn → by action token, where trained


class Collector:
    """Collects iterations of one stage."""

    def __init__(
        self,
        sampler: Sampler,
        module: PolicyModule,
        forward_context: Any,
        *,
        most_rounds: int = MOST_ROUNDS,
    ) -> None:
        self._sampler = sampler
        self._groups = Groups(sampler, most_rounds)
        self._module = module
        self._context = forward_context  # the precision of the trainer's own forward passes

    def iteration(self, stage: Stage, position: Position) -> Iteration:
        """Collect and prepare the iteration after `position`."""
        torch.manual_seed(
            derive(self._sampler.seed, self._sampler.stage, position.iteration, "torch")
        )
        scored, refills = self._groups.collect(stage, position)
        kept = [each for each in scored if joins(each)]
        rows = trajectory_rows(
            [each.trajectory for each in kept], whole_groups=stage.algorithm.needs.whole_groups
        )
        if stage.algorithm.needs.segments:
            chat = self._sampler.chat
            rows = segmented(rows, [each.trajectory for each in kept], chat)
        empty = tuple(filled([], step_batches(stage), position.policy_version))
        steps: tuple[tuple[MicroBatch, ...], ...] = ()
        means: list[float | None] = [None] * len(kept)
        tokens: list[dict[int, list[float]]] = [{} for _ in kept]
        if rows:
            batch, cuts = self._prepare(stage, position, rows=rows, scored=kept)
            steps = self._steps(stage, position, rows=rows, batch=batch, cuts=cuts)
            means, tokens = mean_advantages(batch), token_advantages(batch)
        wanted = stage.trainer.minibatches * stage.trainer.epochs
        steps += (empty,) * (wanted - len(steps))
        told = iter(zip(means, tokens, strict=True))
        pairs = [next(told) if joins(each) else (None, {}) for each in scored]
        own, by_turn = tuple(mean for mean, _ in pairs), tuple(turns for _, turns in pairs)
        return Iteration(steps, tuple(scored), own, _results(kept), refills, by_turn)

    def _prepare(
        self, stage: Stage, position: Position, *, rows: list[Row], scored: list[Scored]
    ) -> tuple[Batch, list[list[int]]]:
        """The whole batch with its advantages, and the row numbers of each optimizer step."""
        algorithm = stage.algorithm
        kl = getattr(algorithm, "kl", None)
        coefficient = 0.0 if kl is None else kl.in_force(position.algorithm)
        batch = collected_batch(rows, scored, coefficient)
        cuts = _split(batch, stage.trainer.minibatches, algorithm.needs.whole_groups)
        if not _exact(stage) or algorithm.needs.value or algorithm.needs.reference:
            batch = self._passes(stage, position, rows=rows, batch=batch)
        if algorithm.needs.value:
            batch = self._module.with_whole_head(lambda head: centred(head, batch, algorithm))
        batch = replace(batch, advantage=algorithm.advantages(batch))
        return replace(batch, value_target=algorithm.value_targets(batch)), cuts

    def _passes(self, stage: Stage, position: Position, *, rows: list[Row], batch: Batch) -> Batch:
        """The batch with what the trainer says of it at the start of the iteration."""
        needs, temperature = stage.algorithm.needs, stage.rollout.temperature
        shape = batch.action_mask.shape
        logp, values, ref = torch.zeros(shape), torch.zeros(shape), torch.zeros(shape)
        used = [n for n, wanted in enumerate(computed(batch, every_row=True)) if wanted]
        most = max(1, len(used))
        parts = list(packed(rows, batch, used, trainer=stage.trainer, most=most))
        longest_share = max(
            ranks.gathered(len(parts))
        )  # sharded weights move for all ranks at once
        parts += [([], filler(position.policy_version))] * (longest_share - len(parts))
        for part, cut_off in parts:
            micro = cut_off.to(self._module.device)
            longest = micro.batch.action_mask.shape[1]
            with torch.no_grad(), self._context():
                out = self._module(micro.strip, temperature=temperature, value=needs.value)
                logp[part, :longest] = out.logp.cpu()[: len(part)]
                if out.value is not None:
                    values[part, :longest] = out.value.cpu()[: len(part)]
                if needs.reference:
                    frozen = self._module(micro.strip, temperature=temperature, reference=True)
                    ref[part, :longest] = frozen.logp.cpu()[: len(part)]
        return replace(
            batch,
            logp_old=ranks.summed(logp),
            values_old=ranks.summed(values) if needs.value else batch.values_old,
            logp_ref=ranks.summed(ref) if needs.reference else batch.logp_ref,
        )

    def _steps(
        self,
        stage: Stage,
        position: Position,
        *,
        rows: list[Row],
        batch: Batch,
        cuts: list[list[int]],
    ) -> tuple[tuple[MicroBatch, ...], ...]:
        """Micro-batches of every optimizer step of the iteration, fillers included.

        Rows that have no loss are left out of them, but not out of the denominators.
        """
        most, trainer, version = step_batches(stage), stage.trainer, position.policy_version
        wanted = computed(batch, every_row=stage.algorithm.needs.every_row)
        steps: list[tuple[MicroBatch, ...]] = []
        for numbers in cuts * trainer.epochs:
            whole = replace(batch, **denominators([rows[n] for n in numbers])._asdict())
            used = [n for n in numbers if wanted[n]]
            parts = packed(rows, whole, used, trainer=trainer, most=most)
            exact = _exact(stage)
            made = [replace(micro, policy_version=version, exact=exact) for _, micro in parts]
            steps.append(tuple(filled(made, most, version)))
        return tuple(steps)


def step_batches(stage: Stage) -> int:
    """Micro-batches in one optimizer step of a collecting stage, fixed by the recipe's budgets."""
    rollout = stage.rollout
    units, tokens = rollout.tasks * rollout.group_size, rollout.tokens
    if stage.algorithm.needs.whole_groups:
        units, tokens = rollout.tasks, rollout.group_size * rollout.tokens
    return micro_batches(
        -(-units // stage.trainer.minibatches), tokens, stage.trainer.tokens_per_batch
    )


def _exact(stage: Stage) -> bool:
    """Whether the ratio is 1 by construction: one optimizer step on what these weights sampled."""
    return (
        stage.trainer.minibatches == 1 and stage.trainer.epochs == 1 and stage.rollout.max_lag == 0
    )


def joins(scored: Scored) -> bool:
    """Whether a trajectory is in the batch; one that is masked is, but has no loss there."""
    return scored.total is not None or scored.masked


def _split(batch: Batch, minibatches: int, whole_groups: bool) -> list[list[int]]:
    """Row numbers by optimizer step: whole trajectories, or groups, in order, equally many each."""
    unit = batch.group if whole_groups else torch.arange(len(batch.returns))  # (N,), from 0
    units, count = unit[batch.trajectory], int(unit.max()) + 1
    ends = [count * (part + 1) // minibatches for part in range(minibatches)]
    parts: list[list[int]] = [[] for _ in range(minibatches)]
    for row, unit in enumerate(units.tolist()):
        parts[next(n for n, end in enumerate(ends) if unit < end)].append(row)
    return [part for part in parts if part]


def mean_advantages(batch: Batch) -> list[float | None]:
    """Each trajectory's mean advantage over its action tokens; null for no tokens."""
    sums: Tensor = torch.zeros(len(batch.returns), dtype=batch.advantage.dtype)
    counts = torch.zeros(len(batch.returns), dtype=batch.advantage.dtype)
    sums.index_add_(0, batch.trajectory, batch.advantage.sum(1))
    counts.index_add_(0, batch.trajectory, batch.action_mask.sum(1).to(counts.dtype))
    pairs = zip(sums.tolist(), counts.tolist(), strict=True)
    return [total / count if count else None for total, count in pairs]


def token_advantages(batch: Batch) -> list[dict[int, list[float]]]:
    """For each trajectory turn → the advantages of its action tokens, in their order."""
    found: list[dict[int, list[float]]] = [{} for _ in range(len(batch.returns))]
    whose = batch.trajectory[:, None].expand_as(batch.action_mask)
    mask = batch.action_mask
    columns = (each[mask].tolist() for each in (whose, batch.turn_index, batch.advantage))
    for trajectory, turn, advantage in zip(*columns, strict=True):
        found[trajectory].setdefault(turn, []).append(advantage)
    return found


def _results(scored: Sequence[Scored]) -> dict[str, float]:
    totals: dict[str, list[float]] = {}
    for each in scored:
        if each.total is not None and math.isfinite(each.total):
            totals.setdefault(each.trajectory.task.id, []).append(each.total)
    return {task: sum(own) / len(own) for task, own in totals.items()}
