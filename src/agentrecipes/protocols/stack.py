"""Reason, plan, search, take back, sum up, conclude: the tags of Agentic-RAG-R1.

A turn is thoughts, ``<reasoning> t </reasoning>`` and ``<plan> p </plan>`` as often as the policy
likes, and then one act: ``<search> q </search>``, ``<backtrack> why </backtrack>``, ``<summary> s
</summary>`` or ``<answer> a </answer>``. The environment goes on with ``<observation> …
</observation>``. What a backtrack and a summary take off is the environment's ``context``. After
Agentic-RAG-R1 (2025, https://github.com/jiangxinke/Agentic-RAG-R1), which names a plan and does not
have it, and TC-RAG (Jiang et al. 2025, https://arxiv.org/abs/2408.09199).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.protocols import pieces, queries
from agentrecipes.protocols.pieces import Characters
from agentrecipes.protocols.protocol import Described
from agentrecipes.records import Action, Call, ToolResult

TAG = re.compile(r"</?(?:reasoning|plan|search|backtrack|summary|answer|observation)>")
CLOSED = re.compile(r"</(search|backtrack|summary|answer)>")
OBSERVATION = re.compile(r"</?observation>")
THOUGHT = re.compile(r"<(reasoning|plan)>([^<]*(?:<(?!/?\1>)[^<]*)*)</\1>")
PLAN = re.compile(r"(?:^|\n)Plan: ")
TOOL = re.compile(r"\s*\[[^\[\]\n]{1,40}\]\s*:")  # "[Wiki_RAG]: " before a query: there is one tool

NOTHING = "no search or answer was closed"
UNOPENED = "a tag was closed that was never opened"
NESTED = "tags are nested"
FORGED = "only the environment writes an observation"
NO_QUERY = "the search is empty"
NO_SUMMARY = "the summary is empty"
NO_ANSWER = "the answer is empty"
TOO_MANY = "too many queries"


@component("protocol")
class Stack(Component):
    """One act ends a turn; what follows it is not read, and sampling stops there anyway.

    Several acts in one turn are therefore the first of them. A thought alone is no action: the turn
    draws a hint. Thoughts are joined line by line, a plan's line beginning with ``Plan:``. Words
    outside of tags are the thought if there is no other, and no fault; a tag that is not closed, or
    stands inside an act, is one.
    """

    queries_per_turn: Annotated[int, Field(ge=1)] = 1  # of a search, one a line
    excess: Literal["error", "truncate"] = "error"  # of queries: refuse them all, or drop the last
    result_characters: Characters = 500  # longest text shown of one query's result
    observation_characters: Characters = 4000  # of a whole observation; its tag is closed always

    stop: ClassVar[tuple[str, ...]] = ("</search>", "</backtrack>", "</summary>", "</answer>")
    observation_role: ClassVar[Literal["inline"]] = "inline"
    only_tool: ClassVar[str] = "search"
    memory: ClassVar[bool] = True  # backtrack and summary are its own words

    def system(self, tools: Sequence[Described]) -> str:
        """Instructions for a model that has not been taught; the only tool is search."""
        several = f", up to {self.queries_per_turn} queries, one a line"
        return "\n".join(
            [
                "Answer the question below step by step. Think inside <reasoning> and </reasoning>,"
                " and write down what you will do inside <plan> and </plan>. Then do one of these:",
                "- <search> query </search> looks something up"
                f"{several if self.queries_per_turn > 1 else ''}; what was found is shown between "
                "<observation> and </observation>.",
                "- <backtrack> why </backtrack> takes the last step back if it led nowhere: it is "
                "no longer shown.",
                "- <summary> what you know </summary> takes the place of the steps before it.",
                "- <answer> answer </answer> concludes, once, as short as can be and without an "
                "explanation.",
            ]
        )

    def parse(self, text: str) -> Action:
        """The action that `text` says, or why it says none."""
        end = CLOSED.search(text)
        if end is None:
            return Action(error=NOTHING)
        before, opening, body = text[: end.start()].rpartition(f"<{end[1]}>")
        if not opening:
            return Action(error=UNOPENED)
        thought, rest = _thoughts(before)
        if OBSERVATION.search(before + body):
            return Action(thought=thought, error=FORGED)
        if TAG.search(rest) or TAG.search(body):
            return Action(thought=thought, error=NESTED)
        return self._act(end[1], body, thought or rest.strip())

    def _act(self, tag: str, body: str, thought: str) -> Action:
        text = body.strip()
        if tag == "answer":
            return Action(thought, (), text) if text else Action(thought, error=NO_ANSWER)
        if tag == "summary" and not text:
            return Action(thought=thought, error=NO_SUMMARY)
        if tag != "search":
            return Action(thought, (Call(tag, {"text": text} if text else {}),))
        calls = queries.calls(TOOL.sub("", body, count=1))
        if not calls:
            return Action(thought=thought, error=NO_QUERY)
        if len(calls) > self.queries_per_turn and self.excess == "error":
            return Action(thought=thought, error=TOO_MANY)
        return Action(thought, calls[: self.queries_per_turn])

    def write(self, action: Action) -> str:
        """The text of a valid action.

        Raises:
            ValueError: the action has no written form.
        """
        first, *plans = PLAN.split(action.thought)
        blocks = [f"<reasoning> {first} </reasoning> "] if first else []
        blocks += [f"<plan> {plan} </plan> " for plan in plans]
        return pieces.checked(self, action, "".join(blocks) + _written(action))

    def render(self, results: Sequence[ToolResult]) -> str:
        """What was found, in the order of the queries and under their labels.

        A summary draws nothing. Tags inside are taken apart, so that a passage can neither close
        the block nor speak for the policy.
        """
        if [result.call.tool for result in results] == ["summary"] and not results[0].text:
            return "\n"
        shown = queries.sections(results, self._shown)
        if len(shown) > self.observation_characters:
            shown = shown[: self.observation_characters].rstrip() + " …"
        return f"\n<observation>{shown} </observation>\n"

    def _shown(self, result: ToolResult) -> str:
        return pieces.untagged(pieces.shown(result, self.result_characters), TAG)

    def hint(self, error: str) -> str:
        """What was wrong and how to go on."""
        ways = "<search> query </search> or <answer> answer </answer>"
        return f"\nMy action is invalid : {error} . I write {ways} .\n"


def _thoughts(text: str) -> tuple[str, str]:
    """Closed thoughts and plans, a line each, and the text without them."""
    lines = []
    for kind, body in THOUGHT.findall(text):
        if body.strip() and not TAG.search(body):
            lines.append(f"Plan: {body.strip()}" if kind == "plan" else body.strip())
    rest = THOUGHT.sub(lambda match: match[2] if TAG.search(match[2]) else " ", text)
    return "\n".join(lines), rest


def _written(action: Action) -> str:
    """The act of an action; what is none is refused where it is read back."""
    if action.answer is not None:
        return f"<answer> {action.answer} </answer>"
    tools = [call.tool for call in action.calls]
    if tools and set(tools) == {"search"}:
        lines = (queries.line(call, n) for n, call in enumerate(action.calls, start=1))
        return f"<search>{''.join(lines)} </search>"
    if tools not in (["backtrack"], ["summary"]):
        return ""
    text = str(action.calls[0].arguments.get("text", ""))
    return f"<{tools[0]}> {text} </{tools[0]}>" if text else f"<{tools[0]}> </{tools[0]}>"
