"""Problems with one right answer, worked out with code or a calculator between the reasoning."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from agentrecipes.components import PartOf, component
from agentrecipes.environments.protocol import Agent
from agentrecipes.environments.tools import Tools
from agentrecipes.records import Task

STEP = re.compile(r"<<([^<>=]+)=")  # GSM8K's solutions say what to work out: <<48/2=24>>


@component("environment")
class Math(Tools):
    """ARTIST's and rStar2-Agent's setting: the policy reasons, runs code, and answers.

    It is the environment ``tools`` with Python as its tool and code as its protocol, and with an
    oracle that works a problem out: with the tool if the task says what to compute (``calls``,
    ``expression``, or the steps ``<<48/2=24>>`` of GSM8K's ``solution``), else by its gold answer.
    After ARTIST (Singh et al. 2025, https://arxiv.org/abs/2505.01441) and rStar2-Agent (Shang et
    al. 2025, https://arxiv.org/abs/2508.20722).
    """

    tools: Annotated[
        tuple[Annotated[Any, PartOf("tool")], ...], Field(min_length=1, validate_default=True)
    ] = ("python",)
    protocol: Annotated[Any, PartOf("protocol"), Field(validate_default=True)] = "code"
    max_turns: Annotated[int, Field(ge=1)] = 6
    instructions: Literal["system", "user", "none"] = "user"  # where the protocol's stand

    def oracle(self, task: Task) -> Agent:
        """Has the first tool work out what the task says, a turn for each, and answers."""
        turns = [[_call(self.tools[0], expression)] for expression in expressions(task)]
        return super().oracle(
            Task(task.id, task.split, task.question, task.gold_answers, {"calls": turns})
        )


def expressions(task: Task) -> list[str]:
    """What the task says to compute, in its order; nothing where it says nothing."""
    if "calls" in task.data:
        calls = [call["arguments"] for turn in task.data["calls"] for call in turn]
        return [str(arguments["expression"]) for arguments in calls if "expression" in arguments]
    if "expression" in task.data:
        return [str(task.data["expression"])]
    return [step.strip() for step in STEP.findall(str(task.data.get("solution", "")))]


def _call(part: Any, expression: str) -> Mapping[str, Any]:
    """The call of a tool that works out an expression: code to a tool that takes code."""
    schema = part.schemas[0] if hasattr(part, "session") else part.schema
    takes_code = "code" in schema.get("parameters", {}).get("properties", {})
    key, text = ("code", f"print({expression})") if takes_code else ("expression", expression)
    return {"tool": schema["name"], "arguments": {key: text}}
