"""The run itself: stages in order, evaluations between them, lock first, summary last."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch

from agentrecipes.compile import Experiment
from agentrecipes.errors import CheckFailed, RunStopped
from agentrecipes.recipe.schema import Stage
from agentrecipes.tracking.protocol import Status
from agentrecipes.training import checkpoints
from agentrecipes.training.evaluation import evaluate
from agentrecipes.training.export import weights
from agentrecipes.training.folder import RunFolder
from agentrecipes.training.position import Position, Sampler
from agentrecipes.training.progress import Progress, Silent
from agentrecipes.training.recorder import Recorder, as_dict, record_evaluations
from agentrecipes.training.signals import StopFlag
from agentrecipes.training.stage import StageRun
from agentrecipes.training.story import Story
from agentrecipes.training.tripwires import Tripwires


def run(
    experiment: Experiment,
    progress: Progress | None = None,
    *,
    resume: bool = False,
    stop: StopFlag | None = None,
) -> dict[str, Any]:
    """Train, evaluate and record; return the summary, which is written in any case.

    `stop` may be set from elsewhere; Ctrl-C and SIGTERM set it.

    Raises:
        Exception: whatever broke the run, after its summary says "failed".
    """
    return _Run(experiment, progress or Silent(), stop or StopFlag()).go(resume=resume)


class _Run:
    """One run of an experiment, while it lasts."""

    def __init__(self, experiment: Experiment, progress: Progress, stop: StopFlag) -> None:
        self.recipe = experiment.recipe
        self.policy = experiment.policy
        self.tables = experiment.tables
        self.tracker = experiment.tracker
        self.progress = progress
        self.folder = RunFolder(
            recipe=experiment.recipe,
            path=experiment.place.folder,
            runs=experiment.place.runs,
            policy=experiment.policy,
            tables=experiment.tables,
            tracker=experiment.tracker,
        )
        self._stop = stop

    def go(self, *, resume: bool) -> dict[str, Any]:
        torch.set_num_threads(self.recipe.stages[0].trainer.threads)
        found = checkpoints.newest(self.folder.checkpoints) if resume else None
        if found is not None:
            self._require_own(found)
        status: Status = "failed"
        try:
            with self._stop:
                self.folder.open()
                status = self._train(found)
        except RunStopped as stopped:
            status = "stopped"
            self.progress.note(str(stopped))
        except KeyboardInterrupt:
            status = "interrupted"
        finally:
            summary = self.folder.close(status)
        return summary

    def _train(self, found: checkpoints.Found | None) -> Status:
        position, first = Position(), 0
        if found is not None:
            position, first = self._restore(found)
        for index in range(first, len(self.recipe.stages)):
            if index != first:
                position = Position(policy_version=position.policy_version)
            position = self._stage(index, position, found if index == first else None)
            if self._stop.asked:
                return "interrupted"
        self._final(position)
        return "finished"

    def _require_own(self, found: checkpoints.Found) -> None:
        own = (self.recipe.hash, self.recipe.seed)
        if (found.state["recipe_hash"], found.state["seed"]) != own:
            raise CheckFailed(f"{found.path} belongs to another recipe; nothing was changed")

    def _restore(self, found: checkpoints.Found) -> tuple[Position, int]:
        state = found.state
        for fault in found.passed_over:
            self.progress.note(f"checkpoint passed over: {fault}")
        self.policy.restore(state["policy"])
        self.folder.story = Story(**state["story"])
        return Position(**state["position"]), int(state["stage"])

    def _stage(self, index: int, position: Position, found: checkpoints.Found | None) -> Position:
        """Run one stage from `position` to its end."""
        fields = self.recipe.stage(index)
        began = time.perf_counter()
        reference = self.folder.checkpoints / f"reference-{index}.pt"
        self.folder.kept(reference.name, lambda: self.policy.prepare(fields, reference))
        if found is not None:
            self.policy.restore_optimizer(found.state["policy"])
        engine = fields.rollout.engine.start(self.policy.module.model, self.policy.tokenizer)
        engine.load(weights(self.policy.module), position.policy_version)
        sampler = Sampler(engine, self.policy.chat, self.recipe.seed, fields.name)
        total = fields.steps or fields.iterations or 0
        self.progress.stage(fields.name, fields.algorithm.part_name, total)
        tripwires = self._tripwires()
        try:
            if position.iteration == 0:
                rows = self._evaluate(fields, sampler, position, splits=[fields.evaluation.split])
                tripwires.before_collecting(fields, rows)
            stage = StageRun(
                at=lambda iteration: self.recipe.stage(index, iteration),
                module=self.policy.module,
                sampler=sampler,
                observer=self._recorder(index, fields, sampler),
            )
            position = tripwires.after_imitating(stage, stage.run(position))
        finally:
            engine.close()
        self.tables.compact(fields.name)
        self.folder.story.stage_done(fields, position, time.perf_counter() - began)
        return position

    def _recorder(self, index: int, fields: Stage, sampler: Sampler) -> Recorder:
        split = fields.evaluation.split

        def measure(position: Position) -> None:
            self._evaluate(
                self.recipe.stage(index, position.iteration), sampler, position, splits=[split]
            )

        return Recorder(
            stage=fields.name,
            tables=self.tables,
            tracker=self.tracker,
            progress=self.progress,
            stop=lambda: self._stop.asked,
            save=lambda position: self.folder.save(index, fields, position),
            evaluate=measure,
            every=fields.evaluation.every,
            began=self.folder.began - self.folder.story.seconds,
            offset=self._offset(index),
        )

    def _tripwires(self) -> Tripwires:
        return Tripwires(
            chat=self.policy.chat,
            seed=self.recipe.seed,
            story=self.folder.story,
            note=self.progress.note,
            stopping=lambda: self._stop.asked,
        )

    def _offset(self, index: int) -> int:
        """Steps and iterations of the stages before: the tracker's axis goes on through the run."""
        before = self.recipe.stages[:index]
        return sum(stage.steps or stage.iterations or 0 for stage in before)

    def _evaluate(
        self, fields: Stage, sampler: Sampler, position: Position, *, splits: Sequence[str]
    ) -> list[dict[str, Any]]:
        told: list[dict[str, Any]] = []
        index = [stage.name for stage in self.recipe.stages].index(fields.name)
        for split in splits:
            found = evaluate(fields, sampler, position, split=split)
            step = self._offset(index) + position.iteration
            record_evaluations(
                found, tables=self.tables, tracker=self.tracker, progress=self.progress, step=step
            )
            told += [as_dict(row) for each in found for row in each.rows]
        self.folder.story.evaluations += told
        return told

    def _final(self, position: Position) -> None:
        """Evaluate on dev and then on test, and write the model."""
        index = len(self.recipe.stages) - 1
        fields = self.recipe.stage(index, position.iteration)
        engine = fields.rollout.engine.start(self.policy.module.model, self.policy.tokenizer)
        engine.load(weights(self.policy.module), position.policy_version)
        sampler = Sampler(engine, self.policy.chat, self.recipe.seed, fields.name)
        known = self.folder.story.was_measured_at(fields.name, position.iteration, "dev")
        splits = ["test"] if known else ["dev", "test"]
        try:
            self._evaluate(fields, sampler, position, splits=splits)
        finally:
            engine.close()
