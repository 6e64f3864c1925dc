"""A run folder for reports: two stages, evaluations, metrics, and trajectories that say things."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentrecipes.records import (
    Call,
    EvaluationRow,
    Place,
    Scored,
    Source,
    Stop,
    Task,
    Trajectory,
    Turn,
)
from agentrecipes.tracking.tables import MetricRow, Tables

RECIPE = {
    "name": "demo",
    "seed": 7,
    "stages": [
        {"name": "imitate", "algorithm": {"name": "sft"}, "steps": 40},
        {"name": "reinforce", "algorithm": {"name": "ppo"}, "iterations": 20},
    ],
}
ORIGIN = {
    "name": "/somewhere/demo.yaml:6",
    "seed": "command line",
    "stages.imitate.steps": "demo.yaml:12",
    "stages.imitate.algorithm.name": "default",
}
WORDS = ("question", " :", " who", " founded", " Rome", "?", " Romulus", "<answer>", "</answer>")
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
TRAIN = Place("reinforce", 19, "train", "sampled")
TEST = Place("reinforce", 20, "test", "sampled")


def turns(actions: Sequence[str], observation: str, length: int) -> tuple[Turn, ...]:
    """A turn for each action, each of `length` tokens; all but the last draw an observation."""
    made = []
    prompt: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    for index, text in enumerate(actions):
        action = tuple((6 + n) % len(WORDS) for n in range(length))
        seen = (4, 6) if index + 1 < len(actions) else ()
        made.append(
            Turn(
                prompt=prompt,
                action=action,
                logp_rollout=tuple(-0.25 * (n % 5) for n in range(length)),
                observation=seen,
                prompt_sources=(Source.PROMPT,) * len(prompt),
                observation_sources=(Source.OBSERVATION,) * len(seen),
                action_text=text,
                observation_text=observation if seen else "",
                calls=(Call("search", {"query": "Rome"}),) if seen else (),
                valid=True,
                reward=0.0,
                policy_version=3,
                engine_seconds=0.25,
                tool_seconds=0.0005,
            )
        )
        prompt = (*prompt, *action, *seen)
    return tuple(made)


def attempt(task: str, number: int, **more: Any) -> Scored:
    """One attempt; `total`, `answer`, `stop`, `gold`, `length` (tokens an action) may be given."""
    total = more.get("total", 1.0)
    own = turns(more.get("said", ("search it", "<answer> Rome")), "found", more.get("length", 3))
    trajectory = Trajectory(
        task=Task(task, "train", "Who?", (more.get("gold", "Romulus"),), {"type": "chain-1"}),
        group=f"g-{task}",
        attempt=number,
        turns=own,
        stop=more.get("stop", Stop.ANSWERED),
        answer=more.get("answer", "Romulus"),
        policy_version=3,
        seconds=1.5,
    )
    return Scored(
        trajectory, {"exact_match": total}, total, (0.0,) * (len(own) - 1) + (total or 0,)
    )


def made_run(folder: Path, *, seed: int = 7, lift: float = 0.0, tokenizer: bool = True) -> Path:
    """A finished run; its scores are higher by `lift`."""
    tables = Tables(folder / "tables", folder.name)
    summary = {
        **{"run": folder.name, "status": "finished", "recipe_hash": "abcdef0123456789"},
        **{"seed": seed, "profile": None, "wall_seconds": 125.0},
        "stages": [
            {"name": "imitate", "steps": 40, "iterations": 0, "wall_seconds": 60.0},
            {"name": "reinforce", "steps": 20, "iterations": 20, "wall_seconds": 50.0},
        ],
    }
    tables.run(summary, {**RECIPE, "seed": seed})
    write_json(folder / "summary.json", summary)
    write_json(folder / "recipe.lock", {"origin": ORIGIN})
    for place, value in (
        (Place("imitate", 0, "dev", "sampled"), 0.0),
        (Place("reinforce", 0, "dev", "sampled"), 0.25),
        (Place("reinforce", 20, "dev", "sampled"), 0.75),
        (TEST, 0.5),
    ):
        tables.evaluations([evaluation(place, value + lift)])
    tables.metrics("imitate", metrics(40, {"loss/nll": 3.0, "time/total_seconds": 1.0}), name="a")
    figures = {"reward/exact_match": 0.5, "reward/total": 0.5, "rollout/stop_answered": 0.9}
    times = {"rollout/stop_turns": 0.1, "time/rollout_seconds": 1.5, "time/update_seconds": 0.5}
    tables.metrics("reinforce", metrics(20, {**figures, **times}), name="a")
    trained = [
        attempt("t0", 0, answer="Romulus"),
        attempt("t0", 1, total=0.0, answer="Remus"),
        attempt("t1", 0, total=None, stop=Stop.TOOL_ERROR, answer=None),
    ]
    by_turn = {0: [-0.75, -0.5, -0.25], 1: [-0.5, -0.5, -0.5]}  # of the second; mean -0.5
    means = [0.5, -0.5, None]
    tables.trajectories(trained, TRAIN, advantage_means=means, advantages=[{}, by_turn, {}])
    tables.trajectories([attempt("test-0", 0), attempt("test-1", 0, answer=HOSTILE)], TEST)
    assert tables.lost == []
    if tokenizer:
        write_tokenizer(folder)
    return folder


def evaluation(place: Place, value: float) -> EvaluationRow:
    """A row of exact_match over 16 tasks of two kinds."""
    by = {"chain-1": value, "chain-2": value / 2}
    where = (place.stage, place.iteration, place.split, place.mode)
    return EvaluationRow(*where, "exact_match", value, 16, 0.1, by, 1.5)


def metrics(count: int, figures: dict[str, float]) -> list[MetricRow]:
    """`count` iterations of each figure, the n-th being n hundredths above the first."""
    return [
        MetricRow(n, n, name, value + n / 100, float(n))
        for n in range(count)
        for name, value in figures.items()
    ]


def write_tokenizer(folder: Path) -> None:
    """A byte-level vocabulary of the words."""
    vocabulary = {word.replace(" ", "Ġ"): index for index, word in enumerate(WORDS)}
    data = {"model": {"vocab": vocabulary}, "decoder": {"type": "ByteLevel"}}
    write_json(folder / "model" / "tokenizer.json", data)


def write_json(path: Path, data: object) -> None:
    """`data` as the JSON of a file, in a folder that is made for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), encoding="utf-8")
