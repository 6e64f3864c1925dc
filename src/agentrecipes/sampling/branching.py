"""Attempts that branch off where the policy became less sure of itself after a tool's result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import log
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.errors import Problem
from agentrecipes.numerics.streams import uniforms
from agentrecipes.sampling.protocol import Branch, Group, Plan

if TYPE_CHECKING:
    from agentrecipes.recipe.schema import Stage
    from agentrecipes.records import Task, Trajectory, Turn


@component("sampling")
class Branching(Component):
    """`initial` attempts from the prompt; after a call, an attempt may go on in several ways.

    ARPO, Dong et al. 2025, https://arxiv.org/abs/2507.19849, in the form of its code: behind the
    result of a call a branch begins with probability clip(base + weight · (H - H₀), 0, 1), where H
    is the entropy of the first `tokens` tokens of the turn that called, summed and divided by the
    logarithm of the vocabulary's size, and H₀ that of the attempt's first turn. What the group
    then lacks is attempted from the prompt on. Here H is estimated by -log p of the sampled tokens,
    whose mean it is. A branch takes over its turns token by token, and the tools are asked again.
    Branches of branches come after those of the attempts before them.
    """

    initial: Annotated[int, Field(ge=1)] = 8  # attempts from the prompt on
    width: Annotated[int, Field(ge=2)] = 2  # ways on from a branching, the attempt's own among them
    base: Annotated[float, Field(ge=0.0, le=1.0)] = 0.5  # chance where the entropy is the first's
    weight: Annotated[float, Field(ge=0.0)] = 0.2  # what an entropy that is higher by 1 adds to it
    tokens: Annotated[int, Field(ge=1)] = 20  # of a turn's beginning, over which entropy is summed

    def rules(self, stage: Stage) -> Iterable[Problem]:
        """Attempts must be left over for branches."""
        size = stage.rollout.group_size
        if self.initial >= size:
            found = f"{self.initial} initial attempts leave no branch in a group of {size}"
            yield Problem("contradiction", "initial", found, "Write fewer, or a larger group_size.")

    def plan(self, tasks: Sequence[Task], group_size: int) -> list[Plan]:
        """The initial attempts of every task."""
        return [Plan(task, min(self.initial, group_size), room=group_size) for task in tasks]

    def refill(self, groups: Sequence[Sequence[object]], rounds: int) -> list[int]:
        """Never any."""
        return []

    def branch(self, group: Group) -> list[Branch]:
        """Branches of the attempts that are new, the earliest turns first; else fresh attempts."""
        places = [place for place in sorted(self._drawn(group)) for _ in range(self.width - 1)]
        found = [Branch(attempt, turns) for turns, attempt in places[: group.room]]
        return found or [Branch()] * group.room

    def _drawn(self, group: Group) -> Iterator[tuple[int, int]]:
        """(turns, attempt) of the branchings in attempts that are new."""
        for place, scored in enumerate(group.attempts):
            trajectory = scored.trajectory
            if place < group.seen or not trajectory.turns:
                continue
            first = self._entropy(trajectory.turns[0], group.words)
            chances = uniforms((*group.key, trajectory.attempt), len(trajectory.turns))
            for number in _new_calls(trajectory):
                change = self._entropy(trajectory.turns[number], group.words) - first
                if chances[number] < branch_probability(change, self.base, self.weight):
                    yield number + 1, place

    def _entropy(self, turn: Turn, words: int) -> float:
        return -sum(turn.logp_rollout[: self.tokens]) / log(words)


def branch_probability(change: float, base: float = 0.5, weight: float = 0.2) -> float:
    """clip(base + weight · change, 0, 1), `change` being that of the entropy (ARPO's code)."""
    return min(max(base + weight * change, 0.0), 1.0)


def _new_calls(trajectory: Trajectory) -> list[int]:
    """Turns of its own that called a tool and were not the last."""
    own = range(trajectory.taken_turns, len(trajectory.turns) - 1)
    return [number for number in own if trajectory.turns[number].calls]
