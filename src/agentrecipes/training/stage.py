"""A stage as Lightning runs it: a Trainer whose epochs are iterations, or blocks of steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

import torch

from agentrecipes.errors import EngineError
from agentrecipes.numerics.streams import derive
from agentrecipes.recipe.schema import Stage
from agentrecipes.training import fit as fitting
from agentrecipes.training import optimizer as optimizers
from agentrecipes.training import ranks
from agentrecipes.training.batch import MicroBatch
from agentrecipes.training.collecting import Collector, Iteration, step_batches
from agentrecipes.training.export import weights
from agentrecipes.training.module import PolicyModule
from agentrecipes.training.pack import micro_batches
from agentrecipes.training.position import Position, Sampler
from agentrecipes.training.reading import Reader
from agentrecipes.training.update import Update
from agentrecipes.training.weighing import Weighing

if TYPE_CHECKING:
    from agentrecipes.demonstrations.protocol import Demonstrations


class Observer(Protocol):
    """What a stage reports to; it may ask to stop at a safe place."""

    def wants_stop(self) -> bool:
        """Asked after every optimizer step: whether to stop at the next safe place."""
        ...

    def step(self, step: int, figures: Mapping[str, float]) -> None:
        """Optimizer step `step` (from 0) of a stage that reads data is done."""
        ...

    def iteration(
        self, after: Position, collected: Iteration, figures: Mapping[str, float]
    ) -> None:
        """The iteration that led to `after` is done; engine and trainer have its weights."""
        ...

    def checkpoint(self, position: Position) -> None:
        """A place to save: `position` is reached, weights and optimizer are at rest."""
        ...


@dataclass(frozen=True)
class StageRun:
    """One stage with everything it needs; `run` takes it from a position to its end."""

    at: Callable[[int], Stage]  # the stage's fields in an iteration
    module: PolicyModule
    sampler: Sampler
    observer: Observer
    fields: Stage = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", self.at(0))

    def run(self, position: Position) -> Position:
        """Train from `position` to the end of the stage, or to where the observer stops it."""
        if self.fields.algorithm.needs.demonstrations:
            return self._read(position)
        return self._collect(position)

    # Stages that collect: one epoch is one iteration.

    def _collect(self, position: Position) -> Position:
        fields, total = self.fields, self.fields.iterations or 0
        steps = fields.trainer.minibatches * fields.trainer.epochs
        most = ranks.share(step_batches(fields))
        self.module.steps = position.iteration * steps
        current = _Current(position)
        collector = Collector(self.sampler, self.module, fitting.precision_context(fields.trainer))

        def pull() -> Iterator[MicroBatch]:
            stage = self.at(current.position.iteration)
            self._begin(
                stage, most, lambda step: optimizers.factor(stage.optimizer, step, total * steps)
            )
            self.module.eval()
            try:
                current.collect(collector.iteration(stage, current.position))
            except EngineError:  # nothing of this iteration was trained: the run can go on here
                self._keep(current.position)
                raise
            self.module.train()
            yield from (micro for step in current.iteration.steps for micro in step)

        def after_epoch() -> bool:
            self._rest()
            collected, terms = current.iteration, self.module.report()
            current.position = self._advance(current.position, collected, terms)
            self.sampler.engine.load(weights(self.module), current.position.policy_version)
            self.observer.iteration(current.position, collected, current.figures(terms))
            return self._save(current.position, total)

        callback = fitting.EpochEnd(after_step=lambda: False, after_epoch=after_epoch)
        left, batches = total - position.iteration, fitting.Pulled(pull, most * steps)
        if self.observer.wants_stop():
            self.observer.checkpoint(position)
        elif left > 0:
            made = fitting.trainer(fields.trainer, epochs=left, accumulate=most, callback=callback)
            fitting.fit(made, self.module, batches, fields=fields.trainer)
        return current.position

    def _keep(self, position: Position) -> None:
        """Save where the run can go on; not where that takes ranks that know of no trouble."""
        if self.module.shards is None:
            self.observer.checkpoint(position)

    def _rest(self) -> None:
        """Nothing moves the weights for now, and all of them are at hand."""
        self.module.eval()
        self.module.refresh()

    def _advance(
        self, before: Position, collected: Iteration, terms: Mapping[str, float]
    ) -> Position:
        stage = self.at(before.iteration)
        return replace(
            before,
            iteration=before.iteration + 1,
            policy_version=before.policy_version + 1,
            curriculum=stage.curriculum.observe(before.curriculum, collected.results),
            algorithm=stage.algorithm.observe(
                before.algorithm,
                {**terms, "rollout/trajectories": float(len(collected.scored))},
            ),
        )

    # Stages that read data: one epoch is a block of optimizer steps.

    def _read(self, position: Position) -> Position:
        total = self.fields.steps or 0
        if position.iteration > total:  # in an extension: the stage itself is done
            return position
        reached = self.read_to(position, total, lambda step: self._rate(step, total))
        if reached.iteration < total:
            return reached
        version = reached.policy_version + 1
        self.sampler.engine.load(weights(self.module), version)
        return replace(reached, policy_version=version)

    def extend(self, position: Position, steps: int) -> Position:
        """Go on reading for `steps` more steps, from half the peak rate down again.

        All extensions are equally long, so that one that was interrupted is taken to its end.
        """
        start = self._extended_to(position, steps)
        plain = self.fields.optimizer.model_copy(update={"warmup_steps": 0})

        def share(step: int) -> float:
            return 0.5 * optimizers.factor(plain, step - start, steps)

        reached = self.read_to(position, start + steps, share)
        whole = reached.iteration >= start + steps
        return replace(reached, extensions=position.extensions + whole)

    def in_extension(self, position: Position, steps: int) -> bool:
        """Whether an extension of `steps` steps was begun and not ended."""
        return position.iteration > self._extended_to(position, steps)

    def _extended_to(self, position: Position, steps: int) -> int:
        return (self.fields.steps or 0) + position.extensions * steps

    def _rate(self, step: int, total: int) -> float:
        return optimizers.factor(self.fields.optimizer, step, total)

    def read_to(self, position: Position, end: int, rate: Callable[[int], float]) -> Position:
        """Train on demonstrations until `end` steps are done, in blocks that end in checkpoints."""
        every = self.fields.trainer.checkpoint_every
        if self.observer.wants_stop():
            self.observer.checkpoint(position)
            return position
        while position.iteration < end:
            left = end - position.iteration
            size = min(every - position.iteration % every, left)  # to where checkpoints are due
            blocks = left // size if size == every else 1
            reached = self._blocks(position, size, blocks, rate=rate)
            stopped = reached.iteration < position.iteration + size * blocks
            position = reached
            if stopped or self.observer.wants_stop():
                break
        return position

    def _blocks(
        self, position: Position, size: int, blocks: int, *, rate: Callable[[int], float]
    ) -> Position:
        fields = self.fields
        most = micro_batches(
            fields.trainer.rows_per_step, fields.rollout.tokens, fields.trainer.tokens_per_batch
        )
        own, reader = ranks.share(most), self.reader
        start = self.module.steps = position.iteration
        done = _Current(position)

        def pull() -> Iterator[MicroBatch]:
            self._begin(fields, own, rate)
            self.module.train()
            first = self.module.steps
            for step in range(first, first + size):
                torch.manual_seed(derive(self.sampler.seed, self.sampler.stage, step, "torch"))
                yield from reader.micro_batches(step, most)

        def after_step() -> bool:
            self.observer.step(self.module.steps - 1, done.figures(self.module.report()))
            return self.observer.wants_stop()

        def after_epoch() -> bool:
            done.position = replace(done.position, iteration=self.module.steps)
            self.module.refresh()
            return self._save(done.position, start + size * blocks)

        callback = fitting.EpochEnd(after_step=after_step, after_epoch=after_epoch)
        made = fitting.trainer(fields.trainer, epochs=blocks, accumulate=own, callback=callback)
        fitting.fit(made, self.module, fitting.Pulled(pull, size * own), fields=fields.trainer)
        self.module.eval()
        return replace(done.position, iteration=self.module.steps)

    @cached_property
    def reader(self) -> Reader:
        """The demonstrations of this stage."""
        fields = self.fields
        return Reader(
            demonstrations=cast("Demonstrations", fields.demonstrations),
            environment=fields.environment,
            chat=self.sampler.chat,
            seed=self.sampler.seed,
            weighing=lambda step: Weighing.of(self.at(step).algorithm),
            trainer=fields.trainer,
            row_tokens=fields.rollout.tokens,
        )

    def _begin(self, stage: Stage, most: int, rate: Callable[[int], float]) -> None:
        self.module.report()  # what an evaluation or an interrupted epoch left
        fp32 = stage.trainer.precision == "fp32" and self.module.dtype == torch.float32
        self.module.update = Update(
            stage.algorithm,
            stage.rollout.temperature,
            most,
            rate,
            max_gap=stage.rollout.engine.bound(fp32=fp32),
        )

    def _save(self, position: Position, end: int) -> bool:
        stop = self.observer.wants_stop()
        if (
            stop
            or position.iteration >= end
            or position.iteration % self.fields.trainer.checkpoint_every == 0
        ):
            self.observer.checkpoint(position)
        return stop


class _Current:
    """Where a running stage stands, and when its iteration began."""

    def __init__(self, position: Position) -> None:
        self.position = position
        self.iteration = Iteration((), (), (), {})
        self._since = time.perf_counter()
        self._collected = self._since

    def collect(self, iteration: Iteration) -> None:
        self.iteration = iteration
        self._collected = time.perf_counter()

    def figures(self, terms: Mapping[str, float]) -> dict[str, Any]:
        """Loss terms and times since the last call."""
        now = time.perf_counter()
        times = {"time/total_seconds": now - self._since}
        if self._collected > self._since:
            times["time/rollout_seconds"] = self._collected - self._since
            times["time/update_seconds"] = now - self._collected
        self._since = self._collected = now
        return {**terms, **times}
