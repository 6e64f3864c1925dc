"""Small made-up trajectories, and a small store of two runs for the queries."""

from __future__ import annotations

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


def turn(
    prompt: tuple[int, ...],
    action: tuple[int, ...],
    observation: tuple[int, ...] = (),
    **more: Any,
) -> Turn:
    """A turn that searched if it was given an observation."""
    calls = (Call("search", {"query": "é?"}),) if observation else ()
    return Turn(
        prompt=prompt,
        action=action,
        logp_rollout=tuple(-0.1 * (1 + index) for index in range(len(action))),
        observation=observation,
        prompt_sources=(Source.PROMPT,) * len(prompt),
        observation_sources=(Source.OBSERVATION,) * len(observation),
        action_text="act",
        observation_text="found" if observation else "",
        calls=more.get("calls", calls),
        valid=more.get("valid", True),
        reward=0.0,
        policy_version=3,
        engine_seconds=0.5,
        tool_seconds=0.25 if observation else 0.0,
    )


# Turn 1 extends turn 0: [1 2] + [7 8] + [5], then [9].
STRAIGHT = (turn((1, 2), (7, 8), (5,)), turn((1, 2, 7, 8, 5), (9,)))


def scored(
    task: str = "t0",
    attempt: int = 0,
    *,
    total: float | None = 1.0,
    turns: tuple[Turn, ...] = STRAIGHT,
    **more: Any,
) -> Scored:
    """A trajectory of `task` whose only part is exact_match, unless `parts` says otherwise."""
    kind = more.get("kind", "chain-1")
    stop = more.get("stop", Stop.ANSWERED)
    trajectory = Trajectory(
        task=Task(task, "train", "Who?", ("Rome", "Roma"), {"type": kind} if kind else {}),
        group=more.get("group", f"g-{task}"),
        attempt=attempt,
        turns=turns,
        stop=stop,
        answer="Rome" if stop is Stop.ANSWERED else None,
        policy_version=3,
        seconds=1.5,
    )
    last = 0.0 if total is None else total
    per_turn = (0.0,) * (len(turns) - 1) + (last,) if turns else ()
    return Scored(trajectory, more.get("parts", {"exact_match": total}), total, per_turn)


def store(root: Path) -> Path:
    """Two finished seeds of one recipe, one of them compacted, as a run would write them."""
    for seed, values in ((0, (0.25, 0.5)), (1, (0.75, 1.0))):
        run = f"demo-{seed}"
        tables = Tables(root / run / "tables", run)
        summary = {
            "status": "finished",
            "recipe_hash": "abcdef0123",
            "seed": seed,
            "profile": None,
            "wall_seconds": 12.5,
            "dir": f"runs/{run}",
            "stages": [
                {"name": "imitate", "algorithm": "sft"},
                {"name": "reinforce", "algorithm": "grpo"},
            ],
            "artifacts": {"model": f"runs/{run}/model"},
        }
        recipe = {"name": "demo", "seed": seed, "stages": [{"name": "reinforce", "iterations": 2}]}
        tables.run(summary, recipe)
        # An earlier stage of more iterations is not the run's result.
        early = EvaluationRow("imitate", 9, "dev", "sampled", "exact_match", 0.0, 4, 0.0, {}, 0.0)
        tables.evaluations([early])
        for iteration, value in enumerate(values):
            _iteration(tables, iteration, value)
        if seed:
            tables.compact("reinforce")
        assert tables.lost == []
    return root


def _iteration(tables: Tables, iteration: int, value: float) -> None:
    wrong = scored("t1", total=0.0, stop=Stop.TURNS, turns=(turn((1,), (2,), (3,)),) * 3)
    unknown = scored("t2", total=None, turns=(turn((1,), (2, 2)),), stop=Stop.TOOL_ERROR)
    tables.trajectories(
        [scored(), wrong, unknown],
        Place("reinforce", iteration, "train", "sampled"),
        advantage_means=[0.5, -0.5, None],
    )
    figures = {"reward/total": value, "loss/total": 0.125}
    rows = [MetricRow(iteration, iteration, k, v, 10.0 * iteration) for k, v in figures.items()]
    tables.metrics("reinforce", rows, name=f"{iteration:06d}")
    by = {"chain-1": value, "chain-2": 0.0}
    for mode in ("sampled", "greedy"):
        row = EvaluationRow(
            "reinforce", iteration, "dev", mode, "exact_match", value, 4, 0.125, by, 1.5
        )
        tables.evaluations([row])
