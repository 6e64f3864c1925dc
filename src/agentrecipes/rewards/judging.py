"""What judged rewards share: shipped prompts, what they show of a trajectory, how replies are read.

A reply is read by its last line alone, and only if that line is exactly what was asked for: a
"yes" anywhere in a reply is not a verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from agentrecipes.components import FileName, PartOf
from agentrecipes.errors import Problem
from agentrecipes.judges.fence import places
from agentrecipes.rewards.protocol import View

PROMPTS = Path(__file__).parent / "prompts"
LONGEST = 8000  # characters of each text that a judge is shown

JudgeOf = Annotated[Any, PartOf("judge")]
Prompt = Annotated[str, FileName("text")]
Longest = Annotated[int, Field(ge=100)]

SHOWS = ("answer", "transcript", "thoughts")  # what the policy did
FIXED = frozenset({"question", "gold", *SHOWS})  # places that every task can fill, gold apart
THOUGHT = re.compile(r"<(think|thought|reasoning|plan)>(.*?)</\1>", re.DOTALL)
VERDICT = re.compile(r"(?:verdict\s*:\s*)?([a-z]+)", re.IGNORECASE)
SCORE = re.compile(r"(?:score\s*:\s*)?(-?\d+(?:\.\d+)?)(?:\s*/\s*\d+)?", re.IGNORECASE)


def template(prompt: str) -> str:
    """The text of a shipped prompt, of which `prompt` is the name; else `prompt` itself."""
    return _shipped().get(prompt, prompt)


@lru_cache
def _shipped() -> Mapping[str, str]:
    return {file.stem: file.read_text(encoding="utf-8") for file in PROMPTS.glob("*.txt")}


def texts(view: View) -> dict[str, str]:
    """What a prompt's places may show: the task's question, golds and data, and what was done."""
    task = view.task
    thoughts = [match[2].strip() for action in view.actions for match in THOUGHT.finditer(action)]
    turns = zip(view.actions, view.observations, strict=True)
    return {
        **{key: _plain(value) for key, value in task.data.items()},
        "question": task.question,
        "gold": "\n".join(task.gold_answers),
        "answer": view.answer or "",
        "thoughts": "\n\n".join(thoughts) or "\n\n".join(view.actions),
        "transcript": "\n\n".join(f"Agent: {a}\nEnvironment: {o}" for a, o in turns),
    }


def _plain(value: Any) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def is_shown_everything(view: View, needed: Iterable[str]) -> bool:
    """Whether the task brings what a prompt shows of it."""
    return all(
        bool(view.task.gold_answers) if name == "gold" else name in view.task.data
        for name in needed
        if name == "gold" or name not in FIXED
    )


def read_fields(names: Iterable[str]) -> frozenset[str]:
    """The task fields behind the places of a prompt."""
    return frozenset(
        "golden_answers" if n == "gold" else n for n in names if n == "gold" or n not in FIXED
    )


def prompt_problems(prompt: str, own: frozenset[str]) -> Iterable[Problem]:
    """A prompt shows something of what the policy did; `own` are places that the reward fills."""
    used = places(template(prompt))
    if not set(used) & {*SHOWS, "second"}:
        found = "the prompt shows nothing of what the policy did"
        hint = "Write {answer}, {transcript} or {thoughts} where it should stand."
        yield Problem("no_effect", "prompt", found, hint)
    for name in sorted(own - set(used)):
        hint = f"Write {{{name}}} where it should stand."
        yield Problem("no_effect", "prompt", f"the prompt lacks {{{name}}}", hint)


def verdict(reply: str, values: Mapping[str, float]) -> float | None:
    """The value of a reply's last line, ``Verdict: yes``; None if it is none of `values`."""
    match = VERDICT.fullmatch(_last(reply))
    return None if match is None else values.get(match[1].lower())


def score(reply: str) -> float | None:
    """The number of a reply's last line, ``Score: 7``; None if it is something else."""
    match = SCORE.fullmatch(_last(reply))
    return None if match is None else float(match[1])


def _last(reply: str) -> str:
    lines = [line for line in reply.splitlines() if line.strip()]
    return lines[-1].strip(" \t*_`\"'.#") if lines else ""
