"""A run's stored trajectories as records again, without a model or a tokenizer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentrecipes.analysis.stored import read_table
from agentrecipes.errors import AgentRecipesError
from agentrecipes.records import Call, Place, Source, Stop, Task, Trajectory, Turn

Key = tuple[str, str, int, str]
"""Task, group, attempt and role: one trajectory at a place."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One row of ``trajectories`` with its rows of ``turns``, in the order they were played."""

    row: Mapping[str, Any]
    turns: tuple[Mapping[str, Any], ...]

    @property
    def is_whole(self) -> bool:
        """Whether every turn that the trajectory counts is stored."""
        return [turn["turn"] for turn in self.turns] == list(range(self.row["turns"]))


@dataclass(frozen=True, slots=True)
class Attempts:
    """What a run has stored, place by place in the order of training."""

    places: Mapping[Place, Sequence[Attempt]]
    strays: Sequence[Mapping[str, Any]] = field(default_factory=tuple)  # turns of no trajectory


def read_attempts(folder: Path, stages: Sequence[str], *, split: str | None = None) -> Attempts:
    """The stored trajectories of a run, of `split` alone if it is given.

    Raises:
        AgentRecipesError: a table is damaged.
    """
    turns: dict[tuple[Place, Key], list[Mapping[str, Any]]] = {}
    for row in read_table(folder, "turns", split=split).to_pylist():
        turns.setdefault((_place(row), _key(row)), []).append(row)
    places: dict[Place, list[Attempt]] = {}
    for row in read_table(folder, "trajectories", split=split).to_pylist():
        own = sorted(turns.pop((_place(row), _key(row)), []), key=lambda turn: turn["turn"])
        places.setdefault(_place(row), []).append(Attempt(row, tuple(own)))
    rank = {stage: number for number, stage in enumerate(stages)}
    order = sorted(places, key=lambda place: (rank.get(place.stage, len(rank)), place.iteration))
    strays = [row for rows in turns.values() for row in rows]
    return Attempts({place: places[place] for place in order}, strays)


def restored(attempt: Attempt, task: Task) -> Trajectory:
    """The trajectory as it was collected; `task` as it was posed.

    Sources say who sampled: whether the environment or the template wrote an observation's token
    is not stored, and no mask asks.

    Raises:
        AgentRecipesError: a value is not one that a run writes.
    """
    try:
        return _restored(attempt, task)
    except (ValueError, TypeError, KeyError) as error:
        row = attempt.row
        where = f"{row['stage']} {row['iteration']}, {row['task']}, attempt {row['attempt']}"
        raise AgentRecipesError(f"{where}: a stored value was changed: {error}") from None


def _restored(attempt: Attempt, task: Task) -> Trajectory:
    row = attempt.row
    turns: list[Turn] = []
    prompt: tuple[int, ...] = ()
    for stored in attempt.turns:
        new = tuple(stored["prompt_ids"])
        prompt = new if stored["fork"] or not turns else (*prompt, *turns[-1].action, *new)
        turns.append(_turn(stored, prompt))
    return Trajectory(
        task=task,
        group=row["group_id"],
        attempt=row["attempt"],
        turns=tuple(turns),
        stop=Stop(row["stop"]),
        answer=row["answer"],
        policy_version=row["policy_version"],
        role=row["role"],
    )


def _turn(stored: Mapping[str, Any], prompt: tuple[int, ...]) -> Turn:
    observation = tuple(stored["observation_ids"])
    calls = json.loads(stored["calls"] or "[]")
    return Turn(
        prompt=prompt,
        action=tuple(stored["action_ids"]),
        logp_rollout=tuple(stored["logp_rollout"]),
        observation=observation,
        prompt_sources=(Source.PROMPT,) * len(prompt),
        observation_sources=(Source.OBSERVATION,) * len(observation),
        action_text=stored["action_text"],
        observation_text=stored["observation_text"],
        calls=tuple(Call(call["tool"], call["arguments"]) for call in calls),
        valid=stored["valid"],
        reward=stored.get("reward") or 0.0,
        policy_version=stored["policy_version"],
        engine_seconds=stored["engine_seconds"],
        tool_seconds=stored["tool_seconds"],
        policy_versions=tuple(stored["policy_versions"] or ()),
        outcomes=tuple(stored.get("outcomes") or ()),
    )


def _place(row: Mapping[str, Any]) -> Place:
    return Place(row["stage"], row["iteration"], row["split"], row["mode"])


def _key(row: Mapping[str, Any]) -> Key:
    return row["task"], row["group_id"], row["attempt"], row["role"]
