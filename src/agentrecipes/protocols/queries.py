"""Several queries in one block of text, one a line, each with the part it is about.

``q1⏎2. q2⏎3. q3``: the label of a line is taken off, and kept as the call's ``slot`` where it is
not the line's own number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from agentrecipes.records import Call, ToolResult

LABEL = re.compile(r"\s*(\d{1,2})[.)]\s+(?=\S)")  # "2. " before a query: which part it is about


def calls(body: str) -> tuple[Call, ...]:
    """One call a line, or one for each string of a JSON list; labels are taken off."""
    lines: Sequence[str] = body.splitlines()
    if body.lstrip().startswith("["):
        try:
            listed = json.loads(body)
        except (ValueError, RecursionError):
            listed = None
        if isinstance(listed, list) and all(isinstance(item, str) for item in listed):
            lines = listed
    found: list[Call] = []
    for line in lines:
        label = LABEL.match(line)
        query = " ".join((line[label.end() :] if label else line).split())
        if not query:
            continue
        place = len(found) + 1
        other = {"slot": int(label[1])} if label and int(label[1]) != place else {}
        found.append(Call("search", {"query": query, **other}))
    return tuple(found)


def line(call: Call, place: int) -> str:
    """How a query is written: with its label, unless it is about the first part."""
    query = " ".join(str(call.arguments["query"]).split())
    if LABEL.match(query):
        return f"\n{query}"
    label = slot(call, place)
    return f"\n{label}. {query}" if label != 1 else f" {query}"


def slot(call: Call, place: int) -> int:
    """The part of the question that a call is about: its label, else its place among the calls."""
    return int(call.arguments.get("slot", place))


def sections(results: Sequence[ToolResult], shown: Callable[[ToolResult], str]) -> str:
    """What each result shows, in the order of the queries and under their labels."""
    blocks = []
    for place, result in enumerate(results, start=1):
        label, text = slot(result.call, place), shown(result)
        mark = f"\n{label}." if label != 1 else ""
        blocks.append(mark + (text if text[:1] in ("", "\n") else f" {text}"))
    return "".join(blocks)
