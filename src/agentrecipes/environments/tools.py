"""Tasks with tools: any list of tools, any protocol, several calls a turn side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Annotated, Any, Literal

from pydantic import Field

from agentrecipes.components import Component, PartOf, component
from agentrecipes.datasets.protocol import Dataset
from agentrecipes.environments.callers import drawer, follower
from agentrecipes.environments.calling import Desk, Limits
from agentrecipes.environments.context import Context, context_problems, wandering
from agentrecipes.environments.halting import Halting, halting_problems
from agentrecipes.environments.prompt import QUESTION, Text, prompt_problems
from agentrecipes.environments.protocol import Agent, OnInvalid, Outcome
from agentrecipes.errors import Problem
from agentrecipes.numerics.streams import derive
from agentrecipes.protocols.protocol import ActionProtocol
from agentrecipes.records import Action, Message, Task
from agentrecipes.tools.protocol import Tool


@component("environment")
class Tools(Component):
    """The policy calls tools until it answers: Agent-R1's ToolEnv.

    A tool says what happened; that an error, an unknown tool or wrong arguments is an observation
    and not the end is said here. What ends an episode is an answer, `max_turns`, too many actions
    that could not be read, or a tool that raises `TaskFailed`. After Agent-R1 (Cheng et al. 2025,
    https://arxiv.org/abs/2511.14460).
    """

    dataset: Annotated[Any, PartOf("dataset")]
    tools: Annotated[tuple[Annotated[Any, PartOf("tool")], ...], Field(min_length=1)]
    protocol: Annotated[Any, PartOf("protocol"), Field(validate_default=True)] = "hermes"
    max_turns: Annotated[int, Field(ge=1)] = 5
    on_invalid: OnInvalid = OnInvalid()
    context: Context = Context()  # which turns the policy goes on seeing
    halting: Halting = Halting()  # when an answer counts
    limits: Limits = Limits()  # of one call
    instructions: Literal["system", "user", "none"] = "system"  # where the protocol's stand
    system: Text | None = None  # text, or a file; stands before the instructions
    prompt: Text | None = None  # the user message with {question}, or a file

    def rules(self, stage: Any) -> Iterable[Problem]:
        """A prompt has a place for the question, and the protocol can call every tool."""
        yield from prompt_problems(self.prompt)
        yield from context_problems(self)
        yield from halting_problems(self)
        named = [str(tool.schema["name"]) for tool in self.tools]
        twice = sorted({name for name in named if named.count(name) > 1})
        if twice:
            yield Problem(
                code="two_tools_of_one_name",
                path="tools",
                message=f"two tools are called {twice[0]!r}",
                suggestion="Take one of them out.",
            )
        only = self._only_tool
        if only is not None and set(named) != {only}:
            yield Problem(
                code="tool_without_a_call",
                path="protocol",
                message=f"the protocol can call {only!r} alone, and the tools are {named}",
                suggestion="Take a protocol for any tool, such as hermes.",
            )

    @property
    def symbols(self) -> frozenset[str]:
        """None: tools know nothing of names that were exchanged."""
        return frozenset()

    @property
    def metrics(self) -> tuple[str, ...]:
        """The rewards that measure the dataset."""
        return self._dataset.metrics

    def tasks(self, split: str) -> Sequence[Task]:
        """The dataset's tasks of a split."""
        return self._dataset.tasks(split)

    def open(self, task: Task, seed: int) -> ToolsEpisode:
        """`task` as it is; nothing in it is drawn."""
        desk = Desk(self._by_name, self.limits)
        return ToolsEpisode(task, self.messages(task.question), desk, self.protocol)

    def messages(self, question: str) -> tuple[Message, ...]:
        """The opening messages: instructions and question."""
        protocol: ActionProtocol = self.protocol
        schemas = [*(tool.schema for tool in self._by_name.values()), *self.context.tools]
        told = "" if self.instructions == "none" else protocol.system(schemas)
        content = question.strip()
        if self.prompt is not None:
            content = self.prompt.replace(QUESTION, content)
        in_system = told if self.instructions == "system" else ""
        in_user = told if self.instructions == "user" else ""
        opening = "\n\n".join(filter(None, (self.system, in_system)))
        asked = "\n\n".join(filter(None, (in_user, content)))
        return (*((Message("system", opening),) if opening else ()), Message("user", asked))

    def oracle(self, task: Task) -> Agent:
        """Makes the calls that the task lists under ``calls``, then gives the gold answer."""
        most = int(getattr(self.protocol, "calls_per_turn", 1))
        return follower(task, calls_per_turn=most, max_turns=self.max_turns)

    def random(self, task: Task, seed: int) -> Agent:
        """Calls tools with words of the question and of what it was shown, and answers with one."""
        schemas = [tool.schema for tool in self._by_name.values()]
        random = Random(derive(seed, "random", task.id))
        return wandering(self, drawer(task, schemas, random), random)

    @property
    def _dataset(self) -> Dataset:
        dataset: Dataset = self.dataset
        return dataset

    @property
    def _by_name(self) -> Mapping[str, Tool]:
        return {str(tool.schema["name"]): tool for tool in self.tools}

    @property
    def _only_tool(self) -> str | None:
        only: str | None = getattr(self.protocol, "only_tool", None)
        return only


@dataclass(frozen=True, slots=True)
class ToolsEpisode:
    """One task being worked on."""

    task: Task
    messages: tuple[Message, ...]
    desk: Desk
    protocol: ActionProtocol

    async def step(self, action: Action) -> Outcome:
        """The end, if the action answers, else what its calls gave.

        Raises:
            TaskFailed: a tool failed.
        """
        if action.answer is not None:
            return Outcome(done=True, answer=action.answer)
        return Outcome(observation=self.protocol.render(await self.desk.answer(action.calls)))

    async def close(self) -> None:
        """Nothing is held open."""
