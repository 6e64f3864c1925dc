"""Trajectories as rows of the tables ``trajectories``, ``turns`` and ``judgements``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from agentrecipes.records import Call, Place, Scored, Trajectory, Turn

TokenAdvantages = Mapping[int, Sequence[float]]
"""Turn → the advantage of each of its action tokens, where it was trained on."""


def trajectory(
    scored: Scored, run: str, place: Place, *, advantage_mean: float | None
) -> dict[str, Any]:
    """One row of ``trajectories``."""
    one = scored.trajectory
    return {
        **_key(one, run, place),
        "stop": str(one.stop),
        "turns": len(one.turns),
        "policy_tokens": one.policy_tokens,
        "observation_tokens": one.observation_tokens,
        "total": scored.total,
        "parts": list(scored.parts.items()),
        "advantage_mean": advantage_mean,
        "answer": one.answer,
        "gold": list(one.task.gold_answers),
        "policy_version": one.policy_version,
        "seconds": one.seconds,
    }


def turns(
    scored: Scored, run: str, place: Place, *, advantages: TokenAdvantages | None = None
) -> Iterator[dict[str, Any]]:
    """The rows of ``turns`` of one trajectory, in order."""
    key = _key(scored.trajectory, run, place)
    before: Turn | None = None
    for index, turn in enumerate(scored.trajectory.turns):
        prompt, fork = new_ids(turn.prompt, before)
        yield {
            **key,
            "turn": index,
            "prompt_ids": prompt,
            "fork": fork,
            "action_ids": turn.action,
            "logp_rollout": turn.logp_rollout,
            "observation_ids": turn.observation,
            "action_text": turn.action_text,
            "observation_text": turn.observation_text,
            "calls": calls_json(turn.calls),
            "outcomes": turn.outcomes,
            "valid": turn.valid,
            "reward": turn.reward,
            "turn_total": scored.per_turn[index] if index < len(scored.per_turn) else None,
            "policy_version": turn.policy_version,
            "policy_versions": turn.policy_versions or None,
            "engine_seconds": turn.engine_seconds,
            "tool_seconds": turn.tool_seconds,
            "advantages": (advantages or {}).get(index),
        }
        before = turn


def judgements(scored: Scored, run: str, place: Place) -> Iterator[dict[str, Any]]:
    """The rows of ``judgements`` of one trajectory, in the order in which judges were asked."""
    key = _key(scored.trajectory, run, place)
    for number, each in enumerate(scored.judgements):
        yield {**key, "number": number, **asdict(each)}


def new_ids(prompt: Sequence[int], before: Turn | None) -> tuple[Sequence[int], bool]:
    """What `prompt` adds to the turn before, and whether it forks: then all of it is new."""
    if before is None:
        return prompt, False
    known = before.prompt + before.action
    if tuple(prompt[: len(known)]) != known:
        return prompt, True
    return prompt[len(known) :], False


def calls_json(calls: Sequence[Call]) -> str:
    """The calls as JSON text; argument values that JSON lacks are written as text."""
    return json.dumps(
        [{"tool": call.tool, "arguments": dict(call.arguments)} for call in calls],
        ensure_ascii=False,
        default=str,
    )


def _key(one: Trajectory, run: str, place: Place) -> dict[str, Any]:
    return {
        "run": run,
        "stage": place.stage,
        "iteration": place.iteration,
        "split": place.split,
        "mode": place.mode,
        "task": one.task.id,
        "group_id": one.group,
        "attempt": one.attempt,
        "role": one.role,
    }
