"""The recipe's tripwires where a stage meets them: before, while and after it trains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentrecipes.errors import RunStopped
from agentrecipes.health.tripwires import Verdict, dead_type, no_signal
from agentrecipes.health.watching import held_out, verdicts, watched
from agentrecipes.numerics.streams import derive
from agentrecipes.recipe.schema import Stage
from agentrecipes.records import Scored
from agentrecipes.rollout.chat import Chat
from agentrecipes.training.guard import Guard
from agentrecipes.training.position import Position
from agentrecipes.training.recorder import Watch
from agentrecipes.training.stage import StageRun
from agentrecipes.training.story import Story


@dataclass(frozen=True, slots=True)
class Tripwires:
    """Asks the rules of ``health.tripwires`` and carries out what they say."""

    chat: Chat
    seed: int
    story: Story
    note: Callable[[str], None]
    stopping: Callable[[], bool]  # whether the run was asked to stop

    def before_collecting(self, fields: Stage, rows: Sequence[Mapping[str, Any]]) -> None:
        """Ask whether the sampled score in the evaluation `rows` can teach a stage anything.

        Raises:
            RunStopped: it cannot, and the recipe says stop.
        """
        rule = fields.tripwires.no_signal
        if rule is None or fields.algorithm.needs.demonstrations:
            return
        sampled = [row["value"] for row in rows if row["mode"] == "sampled"]
        if sampled:
            self._act(no_signal(rule, sampled[0], stage=fields.name))

    def after_imitating(self, stage: StageRun, position: Position) -> Position:
        """Go on imitating while a type of question is dead: RL lifts only what is there.

        Raises:
            RunStopped: a type is dead, and the recipe says stop.
        """
        rule = stage.fields.tripwires.dead_type
        if rule is None or not stage.fields.algorithm.needs.demonstrations:
            return position
        seed = derive(self.seed, stage.fields.name, "guard")
        guard = Guard(stage.module, self.chat, stage.fields.environment, seed)
        while not self.stopping():
            if not stage.in_extension(position, rule.steps):
                accuracy = guard.accuracy_by_type(rule.tasks)
                verdict = dead_type(rule, accuracy, extensions=position.extensions)
                self._act(verdict)
                if verdict.action != "extend":
                    break
            position = stage.extend(position, rule.steps)
        return position

    def while_collecting(self, fields: Stage, save: Callable[[Position], None]) -> Watch | None:
        """What to ask after each iteration of a stage; None where its recipe has no such rule."""
        rules = fields.tripwires
        if not (rules.constant_reward or rules.gaming or rules.collapse):
            return None

        def watch(after: Position, scored: Sequence[Scored], values: Mapping[str, float]) -> None:
            history = self.story.watched.setdefault(fields.name, [])
            history.append(watched(after.iteration, scored, values))
            measured = held_out(self.story.evaluations, fields.name)
            for verdict in verdicts(rules, history, measured):
                if verdict.action == "pause":
                    self.story.verdict(verdict)
                    history.clear()  # or the resumed run would pause at once
                    save(after)
                    raise RunStopped(
                        f"{verdict.message} A checkpoint was saved: resume with --resume."
                    )
                self._act(verdict)
                if verdict.action != "go":
                    history.clear()  # told once; then a new window begins

        return watch

    def _act(self, verdict: Verdict) -> None:
        if verdict.action == "go":
            return
        self.story.verdict(verdict)
        if verdict.action == "stop":
            raise RunStopped(verdict.message)
        self.note(verdict.message)
