"""Packing, as outside programs check it: plain lists in, plain lists out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentrecipes.records import Source, Turn
from agentrecipes.training.rows import rows


def evaluate_packing(turns: Sequence[Mapping[str, Sequence[int]]]) -> list[dict[str, Any]]:
    """Rows with ``ids``, ``sources`` (words) and ``turn_index`` of one trajectory.

    A turn is ``{"prompt", "action", "observation"}``, lists of ids; the prompt is all that the
    policy saw before that turn. Example: ``[{"prompt": [1], "action": [7], "observation": [5]}]``
    gives ``ids [1, 7, 5]`` with sources prompt, policy, observation.
    """
    made = rows([bare_turn(t["prompt"], t["action"], t.get("observation") or ()) for t in turns])
    return [
        {
            "ids": row.ids.tolist(),
            "sources": [Source(int(source)).name.lower() for source in row.sources],
            "turn_index": row.turn_index.tolist(),
        }
        for row in made
    ]


def bare_turn(
    prompt: Sequence[int], action: Sequence[int], observation: Sequence[int] = ()
) -> Turn:
    """A turn of which only the tokens matter."""
    return Turn(
        prompt=tuple(prompt),
        action=tuple(action),
        logp_rollout=(0.0,) * len(action),
        observation=tuple(observation),
        prompt_sources=(Source.PROMPT,) * len(prompt),
        observation_sources=(Source.OBSERVATION,) * len(observation),
        action_text="",
        observation_text="",
        calls=(),
        valid=True,
        reward=0.0,
        policy_version=0,
        engine_seconds=0.0,
        tool_seconds=0.0,
    )
