"""Think, search and answer between tags: the loop of RAG-R1 and Search-R1.

A turn is ``<think> t </think> <search> q </search>``, or ``<answer> a </answer>`` after a thought;
the environment goes on with ``<information> … </information>``. Several queries stand one a line,
the later ones with a label: ``<search> q1⏎2. q2⏎3. q3 </search>``. After RAG-R1 (2025,
https://arxiv.org/abs/2507.02962), which separates queries by commas and does not limit them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.protocols import queries
from agentrecipes.protocols.protocol import Described
from agentrecipes.records import Action, Passage, ToolResult

TAG = re.compile(r"</?(?:think|search|information|answer)>")
CLOSED = re.compile(r"</(search|answer)>")
THINK = re.compile(r"</?think>")
INFORMATION = re.compile(r"</?information>")
THOUGHT = re.compile(r"<think>((?:(?!<think>).)*?)</think>", re.DOTALL)

NOTHING = "no search or answer was closed"
UNOPENED = "a tag was closed that was never opened"
NESTED = "tags are nested"
FORGED = "only the environment writes information"
NO_QUERY = "the search is empty"
NO_ANSWER = "the answer is empty"
TOO_MANY = "too many queries"


@component("protocol")
class SearchTags(Component):
    """What follows the first closed search or answer is not read; sampling stops there anyway."""

    queries_per_turn: Annotated[int, Field(ge=1)] = 1
    excess: Literal["error", "truncate"] = "error"  # of queries: refuse them all, or drop the last
    passage_characters: Annotated[int, Field(ge=1)] = 600  # longest text shown of one passage

    stop: ClassVar[tuple[str, ...]] = ("</search>", "</answer>")
    observation_role: ClassVar[Literal["inline"]] = "inline"
    only_tool: ClassVar[str] = "search"

    def system(self, tools: Sequence[Described]) -> str:
        """Instructions for a model that has not been taught; the only tool is search."""
        several = self.queries_per_turn > 1
        lines = [
            "Answer the question below. Think inside <think> and </think> before you do anything.",
            "If you lack knowledge, search by writing <search> query </search>; what was found is "
            "shown between <information> and </information>. Search as often as you need.",
            # No sample answer as in RAG-R1: it is the gold answer of some question.
            "When you know the answer, write <answer> answer </answer>, as short as can be and "
            "without an explanation.",
        ]
        if several:
            form = "".join(f"\n{n}. query {n}" for n in range(2, self.queries_per_turn + 1))
            most = f"up to {self.queries_per_turn} queries at once"
            lines.insert(2, f"You can ask {most}, one a line: <search> query 1{form} </search>.")
        return "\n".join(lines)

    def parse(self, text: str) -> Action:
        """The action that `text` says, or why it says none."""
        end = CLOSED.search(text)
        if end is None:
            return Action(error=NOTHING)
        thought, rest = _thought(text[: end.start()])
        before, opening, body = rest.rpartition(f"<{end[1]}>")
        if not opening:
            return Action(thought=thought, error=UNOPENED)
        if INFORMATION.search(before + opening + body):
            return Action(thought=thought, error=FORGED)
        unread = THINK.sub("", before)  # words outside a closed thought; they are no fault
        if TAG.search(unread) or TAG.search(body):
            return Action(thought=thought, error=NESTED)
        thought = thought or unread.strip()
        if end[1] == "answer":
            answer = body.strip()
            return Action(thought, (), answer) if answer else Action(thought, error=NO_ANSWER)
        return self._search(thought, body)

    def _search(self, thought: str, body: str) -> Action:
        calls = queries.calls(body)
        if not calls:
            return Action(thought=thought, error=NO_QUERY)
        if len(calls) > self.queries_per_turn and self.excess == "error":
            return Action(thought=thought, error=TOO_MANY)
        return Action(thought=thought, calls=calls[: self.queries_per_turn])

    def write(self, action: Action) -> str:
        """The text of a valid action, one blank or newline before each word.

        Raises:
            ValueError: the action is invalid, empty, or calls something else than ``search``.
        """
        if action.error is not None or any(call.tool != "search" for call in action.calls):
            raise ValueError(f"search_tags cannot write {action!r}")
        thought = f"<think> {action.thought} </think> " if action.thought else ""
        if action.answer is not None:
            return f"{thought}<answer> {action.answer} </answer>"
        if not action.calls:
            raise ValueError("search_tags cannot write an action without calls and answer")
        lines = "".join(queries.line(call, n) for n, call in enumerate(action.calls, start=1))
        return f"{thought}<search>{lines} </search>"

    def render(self, results: Sequence[ToolResult]) -> str:
        """What was found, in the order of the queries and under their labels.

        A result's ``text`` is shown if it has one, else its passages are numbered. Tags inside are
        taken apart, so that a passage can never close the block or speak for the policy.
        """
        sections = queries.sections(results, self._shown)
        return f"\n<information>{sections} </information>\n"

    def _shown(self, result: ToolResult) -> str:
        if result.error is not None:
            return f"error: {_untagged(result.error)}"
        if result.text or not result.passages:
            return _untagged(result.text)
        return "".join(
            f"\nDoc {number} {_untagged(self._cut(passage))}"
            for number, passage in enumerate(result.passages, start=1)
        )

    def _cut(self, passage: Passage) -> str:
        text = passage.text
        if len(text) > self.passage_characters:
            text = text[: self.passage_characters].rstrip() + " …"
        return f"(Title: {passage.title}) {text}" if passage.title else text

    def hint(self, error: str) -> str:
        """What was wrong and how to go on, in RAG-R1's manner."""
        ways = "<search> query </search> or <answer> answer </answer>"
        return f"\nMy action is invalid : {error} . I write {ways} .\n"


def _thought(head: str) -> tuple[str, str]:
    """The first closed thought, and the text without it."""
    match = THOUGHT.search(head)
    if match is None:
        return "", head
    return match[1].strip(), head[: match.start()] + head[match.end() :]


def _untagged(text: str) -> str:
    return TAG.sub(lambda match: f"[{match[0][1:-1]}]", text)
