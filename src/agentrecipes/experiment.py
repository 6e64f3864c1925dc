"""The run itself: stages in order, evaluations between them, lock first, summary last."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch

from agentrecipes.compile import Experiment
from agentrecipes.errors import RunStopped
from agentrecipes.recipe.schema import Stage
from agentrecipes.tracking.protocol import Status
from agentrecipes.tracking.running import held
from agentrecipes.training import checkpoints, ranks
from agentrecipes.training.evaluation import evaluate
from agentrecipes.training.export import weights
from agentrecipes.training.folder import RunFolder
from agentrecipes.training.position import Position, Sampler, started
from agentrecipes.training.progress import Progress, Silent
from agentrecipes.training.recorder import Recorder, as_dict, record_evaluations
from agentrecipes.training.retelling import retell_evaluations, retell_stage
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
        RecipeError: another process works on the run.
        CheckFailed: the checkpoint to go on from is another recipe's; nothing was changed.
        Exception: whatever broke the run, after its summary says "failed".
    """
    with held(experiment.place.folder) if ranks.leads() else nullcontext():
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
            note=progress.note,
            within=experiment.place.within,
            stages=experiment.place.stages,
        )
        self._stop = stop
        self._recent: list[Mapping[str, float]] = []  # what a resumed stage's next mean begins with

    def go(self, *, resume: bool) -> dict[str, Any]:
        torch.set_num_threads(self.recipe.stages[0].trainer.threads)
        found = self.folder.newest() if resume else None
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
                self._recent = []
            position = self._stage(index, position, found if index == first else None)
            if self._stop.agreed():
                return "interrupted"
        self._final(position)
        return "finished"

    def _restore(self, found: checkpoints.Found) -> tuple[Position, int]:
        state, index = found.state, int(found.state["stage"])
        self.folder.events.add("resumed", checkpoint=found.path.name, passed_over=found.passed_over)
        self.policy.restore(state["policy"])
        self.folder.story = Story(**state["story"])
        for number, stage in enumerate(self.recipe.stages[: index + 1]):
            rows, reads = self.tables.told(stage.name), stage.algorithm.needs.demonstrations
            offset = self._offset(number)
            self._recent = retell_stage(rows, self.tracker, offset=offset, reads=reads)
        offsets = {each.name: self._offset(n) for n, each in enumerate(self.recipe.stages)}
        retell_evaluations(self.folder.story.evaluations, self.tracker, offsets=offsets)
        return Position(**state["position"]), index

    def _stage(self, index: int, position: Position, found: checkpoints.Found | None) -> Position:
        """Run one stage from `position` to its end."""
        fields = self.recipe.stage(index)
        began = time.perf_counter()
        reference = self.folder.saved / f"reference-{index}.pt"
        begun = position.iteration > 0
        self.folder.kept(
            reference.name, lambda: self.policy.prepare(fields, reference, begun=begun)
        )
        if found is not None:
            self.policy.restore_optimizer(found.state["policy"])
        engine = started(fields.rollout.engine, self.policy.module.model, self.policy.tokenizer)
        engine.load(weights(self.policy.module), position.policy_version)
        sampler = Sampler(engine, self.policy.chat, self.recipe.seed, fields.name)
        total = fields.steps or fields.iterations or 0
        self.progress.stage(fields.name, fields.algorithm.part_name, total)
        self.folder.events.add("stage", name=fields.name, iteration=position.iteration)
        tripwires = self._tripwires()
        try:
            rows = self._measure(index, sampler, position)
            if position.iteration == 0 and rows:
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
        if not self._stop.asked:
            self.folder.stage_done(index, position.iteration)
        self.folder.story.stage_done(fields, position, time.perf_counter() - began)
        return position

    def _measure(self, index: int, sampler: Sampler, position: Position) -> list[dict[str, Any]]:
        """Evaluate where a stage begins, or goes on, if that is due here and was not done."""
        fields = self.recipe.stage(index, position.iteration)
        every, split = fields.evaluation.every, fields.evaluation.split
        if fields.algorithm.needs.demonstrations:
            every = 0
        due = position.iteration == 0 or (every and position.iteration % every == 0)
        if not due or self.folder.story.was_measured_at(fields.name, position.iteration, split):
            return []
        return self._evaluate(fields, sampler, position, splits=[split])

    def _recorder(self, index: int, fields: Stage, sampler: Sampler) -> Recorder:
        split = fields.evaluation.split

        def measure(position: Position) -> None:
            self._evaluate(
                self.recipe.stage(index, position.iteration), sampler, position, splits=[split]
            )

        def save(position: Position) -> None:
            self.folder.save(index, fields, position)

        return Recorder(
            stage=fields.name,
            tables=self.tables,
            tracker=self.tracker,
            progress=self.progress,
            stop=self._stop.agreed,
            save=save,
            watch=self._tripwires().while_collecting(fields, save),
            evaluate=measure,
            every=fields.evaluation.every,
            began=self.folder.began - self.folder.story.seconds,
            offset=self._offset(index),
            recent=self._recent,
        )

    def _tripwires(self) -> Tripwires:
        return Tripwires(
            chat=self.policy.chat,
            seed=self.recipe.seed,
            story=self.folder.story,
            note=self.progress.note,
            stopping=self._stop.agreed,
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
        engine = started(fields.rollout.engine, self.policy.module.model, self.policy.tokenizer)
        engine.load(weights(self.policy.module), position.policy_version)
        sampler = Sampler(engine, self.policy.chat, self.recipe.seed, fields.name)
        known = self.folder.story.was_measured_at(fields.name, position.iteration, "dev")
        splits = ["test"] if known else ["dev", "test"]
        try:
            self._evaluate(fields, sampler, position, splits=splits)
        finally:
            engine.close()
