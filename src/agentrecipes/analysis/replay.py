"""Rewards and advantages again, from what a run has stored; no model is loaded."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from agentrecipes.analysis.attempts import Attempt, read_attempts, restored
from agentrecipes.analysis.posed import PosedTasks
from agentrecipes.analysis.stored import StoredRun
from agentrecipes.records import Place, Scored
from agentrecipes.rollout.score import score

if TYPE_CHECKING:
    from agentrecipes.recipe.load import Recipe
    from agentrecipes.recipe.schema import Stage

NO_STAGE = "the recipe has no such stage"
NOT_WHOLE = "not all of their turns are stored"
VALUES = "they are made from the critic's values, which are not stored"
PENALTY = "they hold a KL penalty, whose log-probabilities are not stored"
LOGP = "they are made from log-probabilities that are not stored"


def replay(run: StoredRun, recipe: Recipe) -> dict[str, Any]:
    """What `recipe`, the run's own or a changed one, gives for the stored training trajectories.

    Keys: run, status, trajectories, identical (everything that could be computed again equals
    what is stored), max_reward_gap (over totals, turns and the parts that both have),
    max_advantage_gap (over the trajectories' mean advantages; None where none can be computed
    again), flipped_pairs (two attempts of a group, ordered by their totals, that swap),
    sign_changes (of mean advantages), not_replayed [{stage, iterations, what, reason}], notes.

    Raises:
        AgentRecipesError: a table is damaged.
    """
    found = _Findings()
    attempts = read_attempts(run.folder, run.stages, split="train")
    indices = {stage.name: index for index, stage in enumerate(recipe.stages)}
    posed: dict[str, PosedTasks] = {}
    for place, stored in attempts.places.items():
        index = indices.get(place.stage)
        if index is None or not all(each.is_whole for each in stored):
            found.leave(place, "trajectories", NO_STAGE if index is None else NOT_WHOLE)
            continue
        stage = recipe.stage(index, place.iteration)
        tasks = posed.setdefault(place.stage, PosedTasks(recipe.stages[index], recipe.seed))
        played = [restored(one, tasks.task(one.row)) for one in stored]
        scored = score(played, stage.rewards, stage=stage)
        means, reason = advantages(stage, scored)
        if reason:
            found.leave(place, "advantages", reason)
        found.compare(place, stored, scored=scored, means=means)
    strangers = sorted({name for each in posed.values() for name in each.strangers})
    return {"run": run.name, "status": run.status, **found.told(strangers)}


def advantages(stage: Stage, scored: Sequence[Scored]) -> tuple[list[float | None] | None, str]:
    """Each trajectory's mean advantage; or None and why they cannot be computed again."""
    import torch

    from agentrecipes.training.batch import collected_batch
    from agentrecipes.training.collecting import joins, mean_advantages
    from agentrecipes.training.rows import trajectory_rows

    algorithm = stage.algorithm
    kl = getattr(algorithm, "kl", None)
    if algorithm.needs.value:
        return None, VALUES
    if kl is not None and kl.place == "reward":
        return None, PENALTY
    kept = [each for each in scored if joins(each)]
    rows = trajectory_rows(
        [each.trajectory for each in kept], whole_groups=algorithm.needs.whole_groups
    )
    means: list[float | None] = [None] * len(kept)
    if rows:
        batch = collected_batch(rows, kept, 0.0)
        unknown = torch.full_like(batch.logp_old, torch.nan)  # whoever reads it gives itself away
        batch = replace(batch, logp_old=unknown)
        advantage = algorithm.advantages(batch)
        if not bool(torch.isfinite(advantage).all()):
            return None, LOGP
        means = mean_advantages(replace(batch, advantage=advantage))
    left = iter(means)
    return [next(left) if joins(each) else None for each in scored], ""


@dataclass
class _Findings:
    """What the replay has found so far."""

    trajectories: int = 0
    reward_gap: float = 0.0
    advantage_gap: float | None = None
    differs: bool = False
    flipped: list[dict[str, Any]] = field(default_factory=list)
    signs: list[dict[str, Any]] = field(default_factory=list)
    left: dict[tuple[str, str, str], list[int]] = field(default_factory=dict)

    def leave(self, place: Place, what: str, reason: str) -> None:
        """Note what cannot be computed again."""
        self.left.setdefault((place.stage, what, reason), []).append(place.iteration)

    def compare(
        self,
        place: Place,
        stored: Sequence[Attempt],
        *,
        scored: Sequence[Scored],
        means: Sequence[float | None] | None,
    ) -> None:
        self.trajectories += len(stored)
        for own, again in zip(stored, scored, strict=True):
            pairs = list(_rewards(own, again))
            self.differs |= any(not _same(*pair) for pair in pairs)
            self.differs |= dict(own.row["parts"] or ()).keys() != again.parts.keys()
            self.reward_gap = max([self.reward_gap, *(_gap(*pair) for pair in pairs)])
        self.flipped += _flipped(place, stored, scored)
        for own, mean in zip(stored, means or (), strict=means is not None):
            before = own.row["advantage_mean"]
            self.differs |= not _same(before, mean)
            self.advantage_gap = max(self.advantage_gap or 0.0, _gap(before, mean))
            if before is not None and mean is not None and before * mean < 0:
                self.signs.append({**_named(place, own), "before": before, "after": mean})

    def told(self, strangers: Sequence[str]) -> dict[str, Any]:
        notes = []
        if strangers:
            notes.append(
                f"{len(strangers)} tasks are not posed as they were in the run, the first being "
                f"{strangers[0]!r}: they have their stored gold answers and no question"
            )
        if not self.left and self.advantage_gap is None:
            self.advantage_gap = 0.0  # there was nothing to compute
        return {
            "trajectories": self.trajectories,
            "identical": not self.differs,
            "max_reward_gap": self.reward_gap,
            "max_advantage_gap": self.advantage_gap,
            "flipped_pairs": self.flipped,
            "sign_changes": self.signs,
            "not_replayed": [
                {"stage": stage, "iterations": iterations, "what": what, "reason": reason}
                for (stage, what, reason), iterations in self.left.items()
            ],
            "notes": notes,
        }


def _rewards(own: Attempt, again: Scored) -> Iterator[tuple[float | None, float | None]]:
    """(stored, computed again) of the total, the turns' totals, and the parts that both have."""
    yield own.row["total"], again.total
    parts = dict(own.row["parts"] or ())
    yield from ((parts[name], value) for name, value in again.parts.items() if name in parts)
    by_turn: Sequence[float | None] = again.per_turn or [None] * len(own.turns)
    yield from zip((turn["turn_total"] for turn in own.turns), by_turn, strict=True)


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return one == other or (math.isnan(one) and math.isnan(other))


def _gap(one: float | None, other: float | None) -> float:
    """How far two figures are apart; 0 where one of them is missing: that is no distance."""
    if one is None or other is None or _same(one, other):
        return 0.0
    return abs(one - other)


def _flipped(
    place: Place, stored: Sequence[Attempt], scored: Sequence[Scored]
) -> Iterator[dict[str, Any]]:
    """The pairs of a group whose totals are in the other order now; ties have no order."""
    groups: dict[str, list[tuple[Attempt, float, float]]] = {}
    for own, again in zip(stored, scored, strict=True):
        before, after = own.row["total"], again.total
        if before is not None and after is not None:
            groups.setdefault(own.row["group_id"], []).append((own, before, after))
    for members in groups.values():
        for (one, a, new_a), (other, b, new_b) in combinations(members, 2):
            if (a - b) * (new_a - new_b) < 0:
                named = _named(place, one)
                pair = [named.pop("attempt"), other.row["attempt"]]
                yield {**named, "attempts": pair, "before": [a, b], "after": [new_a, new_b]}


def _named(place: Place, own: Attempt) -> dict[str, Any]:
    row = own.row
    return {
        "stage": place.stage,
        "iteration": place.iteration,
        "task": row["task"],
        "group": row["group_id"],
        "attempt": row["attempt"],
    }
