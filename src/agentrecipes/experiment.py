"""The run itself: stages in order, evaluations between them, lock first, summary last."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch

from agentrecipes.compile import Experiment
from agentrecipes.components import added_files
from agentrecipes.errors import CheckFailed, RunStopped
from agentrecipes.health.tripwires import Verdict, dead_type, no_signal
from agentrecipes.numerics.streams import derive
from agentrecipes.recipe.lock import lock
from agentrecipes.recipe.schema import Stage
from agentrecipes.tracking.opening import run_info
from agentrecipes.tracking.protocol import Status
from agentrecipes.tracking.replacing import write
from agentrecipes.tracking.report.page import write_report
from agentrecipes.training import checkpoints, ranks
from agentrecipes.training.evaluation import evaluate
from agentrecipes.training.export import weights
from agentrecipes.training.guard import Guard
from agentrecipes.training.position import Position, Sampler
from agentrecipes.training.progress import Progress, Silent
from agentrecipes.training.recorder import Recorder, as_dict, record_evaluations
from agentrecipes.training.signals import StopFlag
from agentrecipes.training.stage import StageRun
from agentrecipes.training.story import Story, as_json


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
        self.place = experiment.place
        self.folder = experiment.place.folder
        self.policy = experiment.policy
        self.tables = experiment.tables
        self.tracker = experiment.tracker
        self.progress = progress
        self._story = Story()
        self._began = time.perf_counter()
        self._stop = stop

    def go(self, *, resume: bool) -> dict[str, Any]:
        torch.set_num_threads(self.recipe.stages[0].trainer.threads)
        found = checkpoints.newest(self.folder / "checkpoints") if resume else None
        if found is not None:
            self._require_own(found)
        status: Status = "failed"
        try:
            with self._stop:
                if ranks.leads():
                    self._open()
                status = self._train(found)
        except RunStopped as stopped:
            status = "stopped"
            self.progress.note(str(stopped))
        except KeyboardInterrupt:
            status = "interrupted"
        finally:
            summary = self._close(status) if ranks.leads() else self._summary(status)
        return summary

    def _open(self) -> None:
        """Write what identifies the run, before anything else."""
        recipe = self.recipe
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write("recipe.yaml", recipe.to_yaml().encode())
        locked = lock(recipe, extra_files=added_files())
        runs = str(self.place.runs.resolve())  # a resumed run is tracked where it was before
        self._write("recipe.lock", as_json({**locked, "runs": runs}))
        self.tables.run(self._summary("running"), recipe.data)
        self.tracker.start(run_info(recipe, self.folder, locked))

    def _train(self, found: checkpoints.Found | None) -> Status:
        position, first = Position(), 0
        if found is not None:
            position, first = self._restore(found)
        for index in range(first, len(self.recipe.stages)):
            if index != first:
                position = Position(policy_version=position.policy_version)
            position = self._stage(index, position, found if index == first else None)
            if self._stop.agreed():
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
        self._story = Story(**state["story"])
        return Position(**state["position"]), int(state["stage"])

    def _stage(self, index: int, position: Position, found: checkpoints.Found | None) -> Position:
        """Run one stage from `position` to its end."""
        fields = self.recipe.stage(index)
        began = time.perf_counter()
        reference = self.folder / "checkpoints" / f"reference-{index}.pt"
        self._kept(reference.name, lambda: self.policy.prepare(fields, reference))
        if found is not None:
            self.policy.restore_optimizer(found.state["policy"])
        engine = fields.rollout.engine.start(self.policy.module.model, self.policy.tokenizer)
        engine.load(weights(self.policy.module), position.policy_version)
        sampler = Sampler(engine, self.policy.chat, self.recipe.seed, fields.name)
        total = fields.steps or fields.iterations or 0
        self.progress.stage(fields.name, fields.algorithm.part_name, total)
        try:
            if position.iteration == 0:
                rows = self._evaluate(fields, sampler, position, splits=[fields.evaluation.split])
                self._no_signal(fields, rows)
            stage = StageRun(
                at=lambda iteration: self.recipe.stage(index, iteration),
                module=self.policy.module,
                sampler=sampler,
                observer=self._recorder(index, fields, sampler),
            )
            position = self._extend(stage, stage.run(position))
        finally:
            engine.close()
        self.tables.compact(fields.name)
        self._story.stage_done(fields, position, time.perf_counter() - began)
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
            stop=self._stop.agreed,
            save=lambda position: self._save(index, fields, position),
            evaluate=measure,
            every=fields.evaluation.every,
            began=self._began - self._story.seconds,
            offset=self._offset(index),
        )

    def _offset(self, index: int) -> int:
        """Steps and iterations of the stages before: the tracker's axis goes on through the run."""
        return sum(each.steps or each.iterations or 0 for each in self.recipe.stages[:index])

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
        self._story.evaluations += told
        return told

    def _final(self, position: Position) -> None:
        """Evaluate on dev and then on test, and write the model."""
        index = len(self.recipe.stages) - 1
        fields = self.recipe.stage(index, position.iteration)
        engine = fields.rollout.engine.start(self.policy.module.model, self.policy.tokenizer)
        engine.load(weights(self.policy.module), position.policy_version)
        sampler = Sampler(engine, self.policy.chat, self.recipe.seed, fields.name)
        known = self._story.was_measured_at(fields.name, position.iteration, "dev")
        splits = ["test"] if known else ["dev", "test"]
        try:
            self._evaluate(fields, sampler, position, splits=splits)
        finally:
            engine.close()

    # Tripwires.

    def _no_signal(self, fields: Stage, rows: Sequence[Mapping[str, Any]]) -> None:
        rule = fields.tripwires.no_signal
        if rule is None or fields.algorithm.needs.demonstrations:
            return
        sampled = [row["value"] for row in rows if row["mode"] == "sampled"]
        if sampled:
            self._act(no_signal(rule, sampled[0], stage=fields.name))

    def _extend(self, stage: StageRun, position: Position) -> Position:
        """Go on imitating while a type of question is dead: RL lifts only what is there."""
        rule = stage.fields.tripwires.dead_type
        if rule is None or not stage.fields.algorithm.needs.demonstrations:
            return position
        seed = derive(self.recipe.seed, stage.fields.name, "guard")
        guard = Guard(stage.module, self.policy.chat, stage.fields.environment, seed)
        while not self._stop.agreed():
            if not stage.in_extension(position, rule.steps):
                accuracy = guard.accuracy_by_type(rule.tasks)
                verdict = dead_type(rule, accuracy, extensions=position.extensions)
                self._act(verdict)
                if verdict.action != "extend":
                    break
            position = stage.extend(position, rule.steps)
        return position

    def _act(self, verdict: Verdict) -> None:
        if verdict.action == "go":
            return
        self._story.verdict(verdict)
        if verdict.action == "stop":
            raise RunStopped(verdict.message)
        self.progress.note(verdict.message)

    # What stays.

    def _save(self, index: int, fields: Stage, position: Position) -> None:
        state = {
            "stage": index,
            "position": asdict(position),
            "recipe_hash": self.recipe.hash,
            "seed": self.recipe.seed,
            "story": {**asdict(self._story), "seconds": self._elapsed()},
            "policy": self.policy.state(),
        }
        folder = self.folder / "checkpoints"
        try:
            checkpoints.save(
                folder, state, stage=index, done=position.iteration, keep=fields.trainer.keep
            )
        except OSError as error:
            self.tables.lost.append(f"checkpoint {index}-{position.iteration}: {error}")

    def _close(self, status: Status) -> dict[str, Any]:
        """Write what stays; trouble with one thing never loses another."""
        if status != "failed":
            self._kept("model", lambda: self.policy.export(self.folder / "model"))
        report = self.folder / "report.html"
        self._settle(status)
        self._kept(report.name, lambda: write_report([self.folder], report))
        for name in ("recipe.yaml", "recipe.lock", "summary.json", report.name, "model"):
            if (self.folder / name).exists():
                self.tracker.artifact(self.folder / name)
        self.tracker.finish(status)
        return self._settle(status)

    def _settle(self, status: Status) -> dict[str, Any]:
        """Write the summary as it is by now, with all that was lost on the way."""
        summary = self._summary(status)
        summary["lost"] = [*self.tables.lost, *self.tracker.lost]
        self.tables.run(summary, self.recipe.data)
        self._kept("summary.json", lambda: self._write("summary.json", as_json(summary)))
        return {**summary, "lost": [*self.tables.lost, *self.tracker.lost]}

    def _kept(self, name: str, write: Callable[[], object]) -> None:
        try:
            write()
        except OSError as error:
            self.tables.lost.append(f"{name}: not written: {error}")

    def _write(self, name: str, data: bytes) -> None:
        write(self.folder / name, data)

    def _elapsed(self) -> float:
        """Seconds of this run, earlier sittings included."""
        return self._story.seconds + time.perf_counter() - self._began

    def _summary(self, status: str) -> dict[str, Any]:
        seconds = time.perf_counter() - self._began
        told = self._story.summary(self.recipe, self.folder, status=status, seconds=seconds)
        told["artifacts"]["mlflow_run_id"] = self.tracker.run_id
        return told
