"""The tables of a run: their columns, in the words of DuckDB. Outside programs rely on them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_PLACE = {"run": "VARCHAR", "stage": "VARCHAR", "iteration": "BIGINT"}
_SPLIT = {"split": "VARCHAR", "mode": "VARCHAR"}
_ATTEMPT = {"task": "VARCHAR", "group_id": "VARCHAR", "attempt": "BIGINT", "role": "VARCHAR"}

COLUMNS: Mapping[str, Mapping[str, str]] = {
    "runs": {
        "run": "VARCHAR",
        "recipe": "VARCHAR",  # its name
        "status": "VARCHAR",
        "recipe_hash": "VARCHAR",
        "seed": "BIGINT",
        "profile": "VARCHAR",
        "algorithm": "VARCHAR",  # the last stage's
        "wall_seconds": "DOUBLE",
        "dir": "VARCHAR",
        "stages": "VARCHAR",  # JSON, as in the summary
        "artifacts": "VARCHAR",  # JSON, as in the summary
    },
    "recipes": {"run": "VARCHAR", "path": "VARCHAR", "value": "VARCHAR"},
    "metrics": {
        **_PLACE,
        "step": "BIGINT",
        "name": "VARCHAR",
        "value": "DOUBLE",
        "seconds": "DOUBLE",  # since the run began
    },
    "evaluations": {
        **_PLACE,
        **_SPLIT,
        "metric": "VARCHAR",
        "value": "DOUBLE",
        "tasks": "BIGINT",
        "standard_error": "DOUBLE",
        "by": "MAP(VARCHAR, DOUBLE)",  # kind of question → mean
        "rounds_mean": "DOUBLE",
    },
    "trajectories": {
        **_PLACE,
        **_SPLIT,
        **_ATTEMPT,
        "stop": "VARCHAR",
        "turns": "BIGINT",
        "policy_tokens": "BIGINT",
        "observation_tokens": "BIGINT",
        "total": "DOUBLE",  # null: dropped from the update
        "parts": "MAP(VARCHAR, DOUBLE)",  # before their weights; null: could not be computed
        "advantage_mean": "DOUBLE",  # over the action tokens; null where nothing was trained
        "answer": "VARCHAR",
        "gold": "VARCHAR[]",  # any one counts
        "policy_version": "BIGINT",
        "seconds": "DOUBLE",
    },
    "turns": {
        **_PLACE,
        **_SPLIT,
        **_ATTEMPT,
        "turn": "BIGINT",  # from 0
        "prompt_ids": "INTEGER[]",  # new since the turn before; the whole prompt where fork is true
        "fork": "BOOLEAN",  # the prompt does not begin with the last turn's prompt and action
        "action_ids": "INTEGER[]",
        "logp_rollout": "DOUBLE[]",  # nats
        "observation_ids": "INTEGER[]",
        "action_text": "VARCHAR",
        "observation_text": "VARCHAR",
        "calls": "VARCHAR",  # JSON: [{"tool": …, "arguments": {…}}]
        "outcomes": "VARCHAR[]",  # what became of each call: result, error, raised, late, cut, ...
        "valid": "BOOLEAN",
        "reward": "DOUBLE",  # the environment's own
        "turn_total": "DOUBLE",
        "policy_version": "BIGINT",
        "policy_versions": "BIGINT[]",  # by action token, where a turn spans two; else null
        "engine_seconds": "DOUBLE",
        "tool_seconds": "DOUBLE",
        "advantages": "DOUBLE[]",  # by action token; null where nothing was trained
    },
    "judgements": {
        **_PLACE,
        **_SPLIT,
        **_ATTEMPT,
        "number": "BIGINT",  # of the reply, from 0, in the order in which they were asked
        "part": "VARCHAR",  # label of the reward that asked
        "judge": "VARCHAR",  # kind and model
        "prompt": "VARCHAR",  # SHA-256 of what was asked
        "reply": "VARCHAR",  # as it was said; null: the judge failed
        "value": "DOUBLE",  # what was read in it; null: it could not be
        "problem": "VARCHAR",  # why there is no value; "" where there is one
        "cached": "BOOLEAN",  # answered before, and kept
        "seconds": "DOUBLE",
    },
}


@cache
def schema(table: str) -> pa.Schema:
    """The Arrow schema of a table; every column may hold nulls."""
    import pyarrow as pa

    types = {
        "VARCHAR": pa.string(),
        "BIGINT": pa.int64(),
        "DOUBLE": pa.float64(),
        "BOOLEAN": pa.bool_(),
        "VARCHAR[]": pa.list_(pa.string()),
        "INTEGER[]": pa.list_(pa.int32()),
        "BIGINT[]": pa.list_(pa.int64()),
        "DOUBLE[]": pa.list_(pa.float64()),
        "MAP(VARCHAR, DOUBLE)": pa.map_(pa.string(), pa.float64()),
    }
    return pa.schema([(name, types[kind]) for name, kind in COLUMNS[table].items()])
