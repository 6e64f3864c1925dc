"""Fixed shares of each kind of task, and others later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from pydantic import Field, model_validator

from agentrecipes.components import Component, Fields, component
from agentrecipes.curricula.drawing import apportioned, counted, least_seen
from agentrecipes.curricula.kinds import By, NonNegative, field_problems, kind_of, kind_problems
from agentrecipes.curricula.protocol import State
from agentrecipes.errors import Problem, RunStopped
from agentrecipes.records import Task


class Phase(Fields):
    """From an iteration on, these shares."""

    from_: Annotated[int, Field(ge=0, alias="from")] = 0  # iteration of the stage, from 0
    shares: Annotated[Mapping[str, NonNegative], Field(min_length=1)]  # share by kind; any scale

    @model_validator(mode="after")
    def _has_a_share(self) -> Phase:
        if not any(self.shares.values()):
            raise ValueError("every share is 0; give one kind a share above 0")
        return self


@component("curriculum")
class Stages(Component):
    """Shares of an iteration by kind, in phases: simple tasks until 20, then half of them hard.

    ``{by: type, plan: [{shares: {chain-1: 1}}, {from: 20, shares: {chain-1: 1, chain-3: 1}}]}``.
    Each kind gets its share of every iteration, rounded up or down by a draw; within a kind, tasks
    come as in `uniform`. Two stages of this form are how M-GRPO 2025
    (https://arxiv.org/abs/2511.13288) trains: format first, hard tasks later.
    State: ``{"iterations": done, "seen": {task id: times}}``.
    """

    by: By = "type"
    plan: Annotated[tuple[Phase, ...], Field(min_length=1)]  # phases in the order of their `from`

    @model_validator(mode="after")
    def _in_order(self) -> Stages:
        starts = [phase.from_ for phase in self.plan]
        if starts[0] != 0:
            raise ValueError(f"the first phase must begin at 0, but begins at {starts[0]}")
        if starts != sorted(set(starts)):
            raise ValueError(f"phases must begin one after the other, but begin at {starts}")
        return self

    def rules(self, stage: object) -> Iterable[Problem]:
        """The kinds must exist."""
        wrong = list(field_problems(stage, self.by))
        yield from wrong
        for index, phase in enumerate(() if wrong else self.plan):
            key = f"plan[{index}].shares"
            yield from kind_problems(stage, self.by, names=phase.shares, key=key)

    def pick(self, state: State, tasks: Sequence[Task], *, count: int, seed: int) -> list[Task]:
        """`count` tasks in the shares of the phase; some twice if a kind has too few.

        Raises:
            RunStopped: a kind that has a share has no task.
        """
        done: int = state.get("iterations", 0)
        shares = next(phase for phase in reversed(self.plan) if phase.from_ <= done).shares
        groups: dict[str, list[Task]] = {kind: [] for kind, share in shares.items() if share}
        for task in tasks:
            groups.get(kind_of(task, self.by), []).append(task)
        if tasks and (lacking := [kind for kind, own in groups.items() if not own]):
            found = f"no task has {self.by} {lacking[0]!r}, but its share is not 0"
            raise RunStopped(f"curriculum stages, iteration {done}: {found}")
        wanted = apportioned([shares[kind] for kind in groups], count, key=(seed, "stages"))
        seen: Mapping[str, int] = state.get("seen", {})
        return [
            task
            for (kind, own), number in zip(groups.items(), wanted, strict=True)
            for task in least_seen(own, seen, count=number, key=(seed, "stages", kind))
        ]

    def observe(self, state: State, results: Mapping[str, float]) -> State:
        """The state one iteration later, in which the tasks of `results` were seen once more."""
        done: int = state.get("iterations", 0)
        return {**state, "iterations": done + 1, "seen": counted(state, results)}
