"""One turn of function calls that are checked and never carried out, as BFCL has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from agentrecipes.components import PartOf, component
from agentrecipes.environments.callers import drawer, listed_calls
from agentrecipes.environments.posed import Posed
from agentrecipes.environments.prompt import Text
from agentrecipes.environments.protocol import Agent, OnInvalid, Outcome
from agentrecipes.errors import Problem
from agentrecipes.numerics.streams import derive
from agentrecipes.protocols.protocol import ActionProtocol
from agentrecipes.protocols.pythonic import written
from agentrecipes.records import Action, Call, Message, Task

PARALLEL = {"name": "pythonic", "calls_per_turn": 16, "answers": "plain", "tools": "json"}
NO_CALL = "none"
TYPES: Mapping[str, str | None] = {  # BFCL's own types → JSON Schema's; None: any value
    "dict": "object",
    "float": "number",
    "tuple": "array",
    "any": None,
}


@component("environment")
class Bfcl(Posed):
    """The policy is shown a case's functions and its question, and calls or answers, once.

    Every message ends the episode: calls are what is scored (the reward ``bfcl``), an answer says
    that no function fits, and one that cannot be read calls nothing. The functions are the tools of
    that one episode; their schemas are BFCL's, its types turned into JSON Schema's.
    """

    dataset: Annotated[Any, PartOf("dataset"), Field(validate_default=True)] = "bfcl"
    protocol: Annotated[Any, PartOf("protocol"), Field(validate_default=True)] = PARALLEL
    instructions: Literal["system", "user", "none"] = "system"  # where the protocol's stand
    system: Text | None = None  # text, or a file; stands before the instructions

    max_turns: ClassVar[int] = 1
    on_invalid: ClassVar[OnInvalid] = OnInvalid(reply="stop")

    def rules(self, stage: Any) -> Iterable[Problem]:
        """The protocol can call any function, and as many at once as a case wants."""
        only = getattr(self.protocol, "only_tool", None)
        if only is not None:
            yield Problem(
                code="tool_without_a_call",
                path="protocol",
                message=f"the protocol can call {only!r} alone, and every case has functions",
                suggestion="Take pythonic or hermes.",
            )
            return
        most = int(getattr(self.protocol, "calls_per_turn", 1))
        tasks = (task for split in ("train", "dev", "test") for task in self.tasks(split))
        wanted = max((len(_gold(task)) for task in tasks), default=0)
        if wanted > most:
            yield Problem(
                code="too_few_calls",
                path="protocol",
                message=f"calls_per_turn is {most}, and a case wants {wanted} calls in its turn",
                suggestion=f"Write `calls_per_turn: {wanted}` or more.",
            )

    def open(self, task: Task, seed: int) -> BfclEpisode:
        """`task` as it is; nothing in it is drawn."""
        return BfclEpisode(task, self.messages(task))

    def messages(self, task: Task) -> tuple[Message, ...]:
        """The case's own messages; instructions and functions stand before them."""
        protocol: ActionProtocol = self.protocol
        own = [Message(role, content) for role, content in task.data["messages"]]
        systems = [one.content for one in own if one.role == "system"]
        rest = [one for one in own if one.role != "system"]
        told = "" if self.instructions == "none" else protocol.system(schemas(task))
        in_system = told if self.instructions == "system" else ""
        opening = "\n\n".join(filter(None, (self.system, in_system, *systems)))
        if self.instructions == "user":
            rest[0] = Message(rest[0].role, f"{told}\n\n{rest[0].content}")
        return (*((Message("system", opening),) if opening else ()), *rest)

    def oracle(self, task: Task) -> Agent:
        """Makes the gold calls; where none is known, calls if the case is of relevance."""
        calls = tuple(_gold(task))
        if not calls and task.type.endswith("_relevance"):
            calls = (Call(str(task.data["functions"][0]["name"]), {}),)
        thought = str(task.data.get("thought", "next"))
        say = Action(thought, calls) if calls else Action(thought, answer=NO_CALL)
        return lambda observation: say

    def random(self, task: Task, seed: int) -> Agent:
        """Calls a function with words of the question, or answers with one."""
        return drawer(task, schemas(task), Random(derive(seed, "random", task.id)))


@dataclass(frozen=True, slots=True)
class BfclEpisode:
    """One case; whatever is said is its end."""

    task: Task
    messages: tuple[Message, ...]

    async def step(self, action: Action) -> Outcome:
        """The end; the calls as a Python list are the answer."""
        said = written(action.calls) if action.answer is None else action.answer
        return Outcome(done=True, answer=said)

    async def close(self) -> None:
        """Nothing is held open."""


def schemas(task: Task) -> list[dict[str, Any]]:
    """The functions of a case as tools: name, description, parameters as JSON Schema."""
    return [
        {
            "name": one["name"],
            "description": one.get("description", ""),
            "parameters": as_json_schema(one["parameters"]),
        }
        for one in task.data["functions"]
    ]


def as_json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """BFCL's description of a value with JSON Schema's types; all else as it is."""
    made = {key: value for key, value in schema.items() if key != "type"}
    kind = schema.get("type")
    kind = TYPES.get(kind, kind) if isinstance(kind, str) else kind
    if "properties" in made:
        made["properties"] = {key: as_json_schema(one) for key, one in made["properties"].items()}
    if isinstance(made.get("items"), Mapping):
        made["items"] = as_json_schema(made["items"])
    return made if kind is None else {"type": kind, **made}


def _gold(task: Task) -> list[Call]:
    return [call for turn in listed_calls(task) for call in turn]
