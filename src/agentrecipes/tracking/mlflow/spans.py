"""A scored trajectory as a tree of plain spans: itself, its turns, their tools, its rewards."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from agentrecipes.records import Place, Scored, Turn

SECOND = 1_000_000_000  # nanoseconds
PREVIEW = 500  # characters of question and answer shown in the list of traces


def trace(scored: Scored, place: Place, *, run: str, end: int) -> dict[str, Any]:
    """The trace as JSON data, its times laid out backwards from `end` (ns since the epoch).

    The same trajectory at the same place of the same run always has the same id, so that a resumed
    run stores it once.
    """
    one = scored.trajectory
    key = (run, place.stage, place.iteration, place.split, place.mode, one.group, one.attempt)
    identity = hashlib.sha256(repr(key).encode()).hexdigest()[:32]
    spent = sum(turn.engine_seconds + turn.tool_seconds for turn in one.turns)
    start = end - round(max(one.seconds, spent) * SECOND)
    answer = {"answer": one.answer, "stop": str(one.stop), "total": scored.total}
    root = _span(
        f"{place.split} {place.mode} {one.task.id}",
        ("AGENT", start, end),
        inputs={"question": one.task.question, "gold": list(one.task.gold_answers)},
        outputs={**answer, **({"error": one.error} if one.error else {})},
        failed=bool(one.error),
    )
    spans = [root, *_turns(scored, start)]
    spans += _rewards(scored, end, first=len(spans))
    for index, span in enumerate(spans):
        span["id"] = hashlib.sha256(f"{identity}{index}".encode()).hexdigest()[:16]
        span["parent"] = None if index == 0 else spans[span.pop("under")]["id"]
    return {
        "id": identity,
        "start": start,
        "end": end,
        "question": one.task.question[:PREVIEW],
        "answer": (one.answer or "")[:PREVIEW],
        "failed": bool(one.error),
        "tags": _tags(scored, place),
        "spans": spans,
    }


def _tags(scored: Scored, place: Place) -> dict[str, str]:
    one = scored.trajectory
    return {
        "stage": place.stage,
        "iteration": str(place.iteration),
        "split": place.split,
        "mode": place.mode,
        "task": one.task.id,
        "type": one.task.type,
        "attempt": str(one.attempt),
        "stop": str(one.stop),
    }


def _turns(scored: Scored, start: int) -> Iterator[dict[str, Any]]:
    """Each turn, followed by the tools it called; ``under`` is the index of a span's parent."""
    index = 1
    for number, turn in enumerate(scored.trajectory.turns):
        acted = start + round(turn.engine_seconds * SECOND)
        end = acted + round(turn.tool_seconds * SECOND)
        reward = scored.per_turn[number] if number < len(scored.per_turn) else None
        yield _span(
            f"turn {number}",
            ("LLM", start, end),
            inputs={"prompt_tokens": len(turn.prompt), "policy_version": turn.policy_version},
            outputs={"action": turn.action_text, "valid": turn.valid, "reward": reward},
        )
        yield from _tools(turn, under=index, times=(acted, end))
        index += 1 + len(turn.calls)
        start = end


def _tools(turn: Turn, *, under: int, times: tuple[int, int]) -> Iterator[dict[str, Any]]:
    for number, call in enumerate(turn.calls):
        # A turn has one observation for all of its calls; it is shown with the first.
        shown = turn.observation_text if number == 0 else "(shown with the turn's first call)"
        arguments = dict(call.arguments)
        yield _span(call.tool, ("TOOL", *times), inputs=arguments, outputs=shown, under=under)


def _rewards(scored: Scored, end: int, *, first: int) -> Iterator[dict[str, Any]]:
    """Each reward, then what judges said, under the reward that asked; `first` is its index."""
    under = {name: first + number for number, name in enumerate(scored.parts)}
    for name, value in scored.parts.items():
        waited = max((each.seconds for each in scored.judgements if each.part == name), default=0.0)
        times = ("EVALUATOR", end - round(waited * SECOND), end)
        yield _span(f"reward {name}", times, inputs={}, outputs={"value": value})
    for each in scored.judgements:
        yield _span(
            f"judge {each.judge}",
            ("EVALUATOR", end - round(each.seconds * SECOND), end),
            inputs={"prompt_sha256": each.prompt, "cached": each.cached},
            outputs={"reply": each.reply, "value": each.value, "problem": each.problem},
            failed=each.value is None,
            under=under.get(each.part, 0),
        )


def _span(
    name: str, kind: tuple[str, int, int], *, inputs: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    return {
        "name": name,
        "type": kind[0],
        "start": kind[1],
        "end": kind[2],
        "inputs": dict(inputs),
        "outputs": more["outputs"],
        "failed": more.get("failed", False),
        "under": more.get("under", 0),
    }
