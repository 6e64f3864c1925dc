"""Measuring the policy on a split. It does not depend on the recipe's rewards."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agentrecipes.components import build
from agentrecipes.health.metrics import evaluation_rows
from agentrecipes.recipe.schema import RewardEntry, Stage
from agentrecipes.records import EvaluationRow, Place, Scored
from agentrecipes.rollout.collect import collect
from agentrecipes.rollout.score import score
from agentrecipes.sampling.protocol import Plan
from agentrecipes.training import ranks
from agentrecipes.training.position import Position, Sampler


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One evaluation: its rows for the summary, and the trajectories behind them."""

    place: Place
    rows: tuple[EvaluationRow, ...]
    scored: tuple[Scored, ...]


def metrics_of(stage: Stage) -> tuple[RewardEntry, ...]:
    """The evaluation's metrics: the recipe's, or the ones that belong to the dataset."""
    named = stage.evaluation.metrics
    parts = named or tuple(build("reward", name) for name in stage.environment.metrics)
    return tuple(RewardEntry(part=part) for part in parts)


def evaluate(stage: Stage, sampler: Sampler, position: Position, *, split: str) -> list[Evaluated]:
    """Evaluate in the recipe's modes on the first tasks of `split`: the same ones every time.

    Rank 0 does; the others hear its figures, without the trajectories.
    """
    found = _measured(stage, sampler, position, split=split) if ranks.leads() else []
    told = ranks.from_first([replace(each, scored=()) for each in found])
    return found if ranks.leads() else told


def _measured(stage: Stage, sampler: Sampler, position: Position, *, split: str) -> list[Evaluated]:
    wanted = stage.evaluation
    tasks = list(stage.environment.tasks(split))[: wanted.tasks]
    entries = metrics_of(stage)
    found = []
    for mode in wanted.modes:
        attempts = wanted.samples if mode == "sampled" else 1
        plans = [Plan(task, attempts) for task in tasks]
        jobs = sampler.jobs(plans, position.iteration, f"evaluation-{split}-{mode}")
        setting = sampler.setting(stage, position, greedy=mode == "greedy")
        scored = score(collect(jobs, setting), entries, stage=stage)
        place = Place(sampler.stage, position.iteration, split, mode)
        rows = evaluation_rows(scored, [entry.label for entry in entries], place)
        found.append(Evaluated(place, tuple(rows), tuple(scored)))
    return found
