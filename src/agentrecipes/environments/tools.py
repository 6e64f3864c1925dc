"""Tasks with tools: any list of tools, any protocol, several calls a turn side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from random import Random
from typing import Annotated, Any, Literal

from pydantic import Field

from agentrecipes.components import Fields, PartOf, component
from agentrecipes.environments.callers import drawer, follower
from agentrecipes.environments.calling import Desk, Limits
from agentrecipes.environments.context import Context, context_problems, wandering
from agentrecipes.environments.halting import Halting, halting_problems, patient
from agentrecipes.environments.posed import Posed
from agentrecipes.environments.prompt import QUESTION, Text, prompt_problems
from agentrecipes.environments.protocol import Agent, OnInvalid, Outcome
from agentrecipes.errors import Problem, RecipeError, TaskFailed
from agentrecipes.numerics.streams import derive
from agentrecipes.protocols.protocol import ActionProtocol
from agentrecipes.records import Action, Message, Task
from agentrecipes.tools.protocol import Session


class CallRewards(Fields):
    """What the environment gives a turn for each of its calls: process rewards.

    The reward ``environment`` brings them into the return.
    """

    result: float = 0.0  # the call had a result
    error: float = 0.0  # or whatever else became of it

    def of(self, outcomes: Sequence[str]) -> float:
        """The sum over a turn's calls; a result that was cut is one."""
        good = sum(outcome in ("result", "cut") for outcome in outcomes)
        return self.result * good + self.error * (len(outcomes) - good)


@component("environment")
class Tools(Posed):
    """The policy calls tools until it answers: Agent-R1's ToolEnv.

    A tool says what happened; that an error, an unknown tool or wrong arguments is an observation
    and not the end is said here. What ends an episode is an answer, `max_turns`, too many actions
    that could not be read, or a tool that raises `TaskFailed`. After Agent-R1 (Cheng et al. 2025,
    https://arxiv.org/abs/2511.14460).
    """

    tools: Annotated[tuple[Annotated[Any, PartOf("tool")], ...], Field(min_length=1)]
    protocol: Annotated[Any, PartOf("protocol"), Field(validate_default=True)] = "hermes"
    max_turns: Annotated[int, Field(ge=1)] = 5
    on_invalid: OnInvalid = OnInvalid()
    context: Context = Context()  # which turns the policy goes on seeing
    halting: Halting = Halting()  # when an answer counts
    limits: Limits = Limits()  # of one call
    call_rewards: CallRewards = CallRewards()  # what a turn gets for what its calls came to
    instructions: Literal["system", "user", "none"] = "system"  # where the protocol's stand
    system: Text | None = None  # text, or a file; stands before the instructions
    prompt: Text | None = None  # the user message with {question}, or a file

    def rules(self, stage: Any) -> Iterable[Problem]:
        """A prompt has a place for the question, and the protocol can call every tool."""
        yield from prompt_problems(self.prompt)
        yield from context_problems(self)
        yield from halting_problems(self)
        shared = [tool for tool in self.tools if not hasattr(tool, "session")]
        named = [str(tool.schema["name"]) for tool in shared]
        twice = sorted({name for name in named if named.count(name) > 1})
        if twice:
            yield Problem(
                code="two_tools_of_one_name",
                path="tools",
                message=f"two tools are called {twice[0]!r}",
                suggestion="Take one of them out.",
            )
        only = self._only_tool
        if only is not None and (set(named) != {only} or len(shared) < len(self.tools)):
            yield Problem(
                code="tool_without_a_call",
                path="protocol",
                message=f"the protocol can call {only!r} alone, and the tools are {named}",
                suggestion="Take a protocol for any tool, such as hermes.",
            )

    def open(self, task: Task, seed: int) -> ToolsEpisode:
        """`task` as it is; nothing in it is drawn. Tools that remember begin anew.

        Raises:
            RecipeError: two tools have one name.
        """
        told = {str(schema["name"]): deepcopy(schema) for schema in self._schemas}
        if len(told) < len(self._schemas):
            names = ", ".join(str(schema["name"]) for schema in self._schemas)
            raise RecipeError(f"environment.tools: two tools have one name, of {names}. Drop one")
        sessions = tuple(
            part.session(task, seed) for part in self.tools if hasattr(part, "session")
        )
        own = [tool for tool in self.tools if not hasattr(tool, "session")]
        own += [tool for session in sessions for tool in session.tools]
        desk = Desk({str(tool.schema["name"]): tool for tool in own}, self.limits, told)
        messages = self.messages(task.question)
        return ToolsEpisode(task, messages, desk, self.protocol, self.call_rewards, sessions)

    def messages(self, question: str) -> tuple[Message, ...]:
        """The opening messages: instructions and question."""
        protocol: ActionProtocol = self.protocol
        schemas = [*self._schemas, *self.context.tools]
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
        return patient(self, follower(task, calls_per_turn=most, max_turns=self.max_turns))

    def random(self, task: Task, seed: int) -> Agent:
        """Calls tools with words of the question and of what it was shown, and answers with one."""
        schemas = list(self._schemas)
        random = Random(derive(seed, "random", task.id))
        return wandering(self, drawer(task, schemas, random), random)

    @property
    def _schemas(self) -> Sequence[Mapping[str, Any]]:
        """Of all tools, those of every session included."""
        parts = ((p.schemas if hasattr(p, "session") else [p.schema]) for p in self.tools)
        return [schema for own in parts for schema in own]

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
    rewards: CallRewards
    sessions: tuple[Session, ...] = ()

    async def step(self, action: Action) -> Outcome:
        """The end, if the action answers, else what its calls gave.

        Raises:
            TaskFailed: a tool failed.
        """
        if action.answer is not None:
            return Outcome(done=True, answer=action.answer)
        called = {call.tool for call in action.calls}
        for session in self.sessions:  # what starting takes is not the first call's time
            if called & {str(tool.schema["name"]) for tool in session.tools}:
                await session.start()
        results = await self.desk.answer(action.calls)
        outcomes = tuple(result.outcome for result in results)
        shown = self.protocol.render(results)
        return Outcome(shown, reward=self.rewards.of(outcomes), calls=outcomes)

    async def close(self) -> None:
        """Close the tools that were this episode's own, whatever one of them does.

        Raises:
            TaskFailed: one could not be closed.
        """
        closing = (session.close() for session in self.sessions)
        failed = [e for e in await asyncio.gather(*closing, return_exceptions=True) if e]
        if failed:
            raise TaskFailed(f"a tool could not be closed: {failed[0]}")
