"""How many tokens an iteration has and how long it takes, from counts of operations."""

from __future__ import annotations

from dataclasses import dataclass

from agentrecipes.analysis.plan.machine import Device, Speed
from agentrecipes.analysis.plan.memory import Sizes
from agentrecipes.analysis.plan.shape import Shape
from agentrecipes.recipe.schema import Stage

CALL = {"cpu": 2.5e-4, "gpu": 5e-5}  # seconds that a layer takes however little it computes


def tokens(stage: Stage) -> int:
    """Most tokens of an iteration, or of an optimizer step of a stage that reads data."""
    if stage.algorithm.needs.demonstrations:
        return stage.trainer.rows_per_step * stage.rollout.tokens
    return stage.rollout.tasks * stage.rollout.group_size * stage.rollout.tokens


@dataclass(frozen=True, slots=True)
class Clock:
    """Tells how long things take on a device of some speed."""

    device: Device
    speed: Speed

    @property
    def call(self) -> float:
        return CALL[self.device.kind]


def seconds(stage: Stage, shape: Shape, sizes: Sizes, *, clock: Clock) -> float:
    """Of an iteration, or an optimizer step, that has so many tokens."""
    update = _updating(stage, shape, sizes, clock=clock)
    return update + _sampling(stage, shape, sizes, clock=clock)


def _updating(stage: Stage, shape: Shape, sizes: Sizes, *, clock: Clock) -> float:
    """Two operations a parameter and token forward, four back; two in each pass without."""
    needs, trainer, count = stage.algorithm.needs, stage.trainer, tokens(stage)
    exact = trainer.minibatches == trainer.epochs == 1
    collects = not needs.demonstrations
    passes = 0 if not collects else int(not exact or needs.value or needs.reference)
    passes += int(needs.reference)
    forward = 2 * shape.computing + 2 * shape.layers * shape.queries * stage.rollout.tokens
    back = forward if sizes.frozen_base else 2 * forward
    whole = count * (passes * forward + trainer.epochs * (forward + back))
    calls = (passes + 3 * trainer.epochs) * -(-count // max(trainer.tokens_per_batch, 1))
    return whole / (clock.speed.rate * sizes.ranks) + calls * shape.layers * clock.call


def _sampling(stage: Stage, shape: Shape, sizes: Sizes, *, clock: Clock) -> float:
    """Every token is a pass over the weights, for as many rows as there are at once."""
    rollout = stage.rollout
    if stage.algorithm.needs.demonstrations:
        return 0.0
    rows = rollout.tasks * rollout.group_size
    at_once = min(rollout.concurrency, rows)
    reading = shape.computing * sizes.weight / clock.speed.bandwidth
    step = max(reading, at_once * 2 * shape.computing / clock.speed.rate)
    step += shape.layers * clock.call
    return step * rollout.tokens * -(-rows // at_once)
