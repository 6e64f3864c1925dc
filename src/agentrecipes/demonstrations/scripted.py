"""Demonstrations by a script that errs on purpose, played through the real environment."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Annotated, Any

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.demonstrations.playing import written
from agentrecipes.demonstrations.protocol import Demonstration
from agentrecipes.environments.context import context_of
from agentrecipes.environments.halting import patient
from agentrecipes.environments.protocol import Agent, Environment
from agentrecipes.environments.renaming import Renaming
from agentrecipes.environments.script import Faults, Script
from agentrecipes.errors import Problem, RecipeError
from agentrecipes.numerics.streams import derive
from agentrecipes.records import Task

Share = Annotated[float, Field(ge=0.0, le=1.0)]
MIX = {  # share of a type; longer questions are harder to imitate
    "chain-1": 0.08,
    "chain-2": 0.16,
    "chain-3": 0.24,
    "conjunction-2": 0.26,
    "conjunction-3": 0.26,
}


@component("demonstrations")
class Scripted(Component):
    """Follows a task's plan with faults, so that imitation alone cannot be perfect.

    A task without a plan is played by the environment's oracle: on real questions it searches for
    the supporting titles, then answers; a share `random` of such episodes is played at random.

    With the defaults, half of the demonstrations end correct where three queries fit a turn, and
    43 % where one does. A reward can select what they show rarely, and revives nothing that they
    never show.
    """

    count: Annotated[int, Field(ge=1)] = 3000  # demonstrations
    mix: Mapping[str, Annotated[float, Field(ge=0.0)]] | None = None  # share by type; null: MIX
    stop_chain: Share = (
        0.38  # answers after the first turn of a chain; half as often after later ones
    )
    stop_conjunction: Share = 0.30  # the same for conjunctions
    lazy_query: Share = 0.12  # the query names the subject alone
    wrong_passage: Share = 0.10  # another passage is read than the right one
    wrong_relation: Share = 0.05  # another relation of the question is looked up
    one_query: Share = 0.30  # only the first of several pending queries is asked
    backtrack: Share = 0.0  # a step that did not find what was asked for is taken back
    summary: Share = 0.0  # what was found is summed up before the next query
    random: Share = 0.0  # of tasks without a plan: played by the environment's random agent

    def rules(self, stage: Any) -> Iterable[Problem]:
        """Only a stack can be edited."""
        stacked = context_of(stage.environment).policy == "stack"
        for name in ("backtrack", "summary"):
            if getattr(self, name) and not stacked:
                yield Problem(
                    code="no_stack",
                    path=name,
                    message="the environment has no stack that a demonstration could edit",
                    suggestion="Write `environment: {context: {policy: stack}, protocol: stack}`.",
                )

    def draw(self, environment: Environment, seed: int) -> Sequence[Demonstration]:
        """`count` demonstrations of training tasks; the same for the same seed.

        Raises:
            RecipeError: there is no task to demonstrate.
        """
        return asyncio.run(self._draw(environment, seed))

    def restate(
        self, demonstration: Demonstration, environment: Environment, seed: int
    ) -> Demonstration:
        """The same demonstration under a fresh permutation of the interchangeable names."""
        if not environment.symbols:
            return demonstration
        renaming = Renaming(environment.symbols, seed)
        text = renaming.text
        return Demonstration(
            task=renaming.task(demonstration.task),
            messages=tuple(
                [type(m)(m.role, text(m.content)) for m in demonstration.messages],
            ),
            turns=tuple([(text(action), text(seen)) for action, seen in demonstration.turns]),
            weights=demonstration.weights,
            correct=demonstration.correct,
            shown=demonstration.shown,
        )

    async def _draw(self, environment: Environment, seed: int) -> list[Demonstration]:
        tasks = environment.tasks("train")
        if not tasks:
            raise RecipeError("demonstrations: the dataset has no tasks in its train split")
        chosen = self._choose(tasks, Random(derive(seed, "demonstrations")))
        return [
            await self._play(environment, task, derive(seed, "demonstration", number))
            for number, task in enumerate(chosen)
        ]

    def _choose(self, tasks: Sequence[Task], random: Random) -> list[Task]:
        """Types at random in their shares; the tasks of a type in a random order, over and over."""
        shares = MIX if self.mix is None else self.mix
        by_type: dict[str, list[Task]] = {}
        for task in tasks:
            by_type.setdefault(task.type, []).append(task)
        weights = [shares.get(kind, 0.0 if self.mix else 1.0 / len(by_type)) for kind in by_type]
        if not sum(weights):
            raise RecipeError(f"demonstrations.mix: gives no share to any of {', '.join(by_type)}")
        orders = {kind: sorted(own, key=lambda _: random.random()) for kind, own in by_type.items()}
        used = dict.fromkeys(by_type, 0)
        chosen = []
        for kind in random.choices(list(by_type), weights, k=self.count):
            chosen.append(orders[kind][used[kind] % len(orders[kind])])
            used[kind] += 1
        return chosen

    async def _play(self, environment: Environment, task: Task, seed: int) -> Demonstration:
        """One episode."""
        episode = environment.open(task, seed)
        return await written(environment, episode, self._script(environment, episode.task, seed))

    def _script(self, environment: Environment, task: Task, seed: int) -> Agent:
        """The plan with faults; where a task has no plan, the environment's oracle or random."""
        if "plan" not in task.data:
            at_random = Random(derive(seed, "played at random")).random() < self.random
            return environment.random(task, seed) if at_random else environment.oracle(task)
        queries = int(getattr(environment.protocol, "queries_per_turn", 1))
        script = Script(task, queries, faults=self._faults(), random=Random(seed))
        return patient(environment, script)

    def _faults(self) -> Faults:
        return Faults(
            stop_chain=self.stop_chain,
            stop_conjunction=self.stop_conjunction,
            lazy_query=self.lazy_query,
            wrong_passage=self.wrong_passage,
            wrong_relation=self.wrong_relation,
            one_query=self.one_query,
            backtrack=self.backtrack,
            summary=self.summary,
        )
