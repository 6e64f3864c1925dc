"""Log-probabilities again, where the weights that sampled are still there: the run's last ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentrecipes.analysis.attempts import Attempt, restored
from agentrecipes.analysis.stored import StoredRun
from agentrecipes.components import build
from agentrecipes.records import Place, Scored, Task

if TYPE_CHECKING:
    from torch import Tensor

    from agentrecipes.recipe.load import Recipe
    from agentrecipes.recipe.schema import Stage
    from agentrecipes.training.module import PolicyModule

EXACT_NATS = 1e-3  # largest gap where one program samples and measures in float32
ROUNDED_NATS = 0.2  # where another engine samples, or bfloat16 or quantised weights do
Gap = tuple[Place, Attempt, int, float]
"""(place, trajectory, turn, largest gap in nats)."""


def last_evaluations(
    run: StoredRun, places: Mapping[Place, Sequence[Attempt]]
) -> dict[Place, Sequence[Attempt]]:
    """The whole evaluation trajectories that the weights in ``model/`` sampled.

    Empty where the run has not finished: its weights may have gone on since.
    """
    if run.status != "finished" or not (run.folder / "model").is_dir():
        return {}
    measured = {
        place: [each for each in own if each.is_whole and each.turns]
        for place, own in places.items()
        if place.split != "train" and place.stage == run.stages[-1]
    }
    versions = [
        turn["policy_version"] for own in measured.values() for a in own for turn in a.turns
    ]
    return {
        place: own
        for place, own in measured.items()
        if own
        and all(turn["policy_version"] == max(versions) for each in own for turn in each.turns)
    }


def gaps(
    run: StoredRun, recipe: Recipe, places: Mapping[Place, Sequence[Attempt]]
) -> Iterator[Gap]:
    """How far each stored turn of `places` is from what the run's model says of it.

    Raises:
        RecipeError: the model cannot be loaded.
    """
    import torch
    from transformers.utils import logging

    from agentrecipes.training.policy import Policy

    logging.disable_progress_bar()
    last = len(recipe.stages) - 1
    done = recipe.stages[last].iterations or recipe.stages[last].steps or 0
    stage = recipe.stage(last, done)
    torch.set_num_threads(stage.trainer.threads)
    part = build("model", {"name": "run", "path": str(run.folder / "model")})
    module = Policy.build(part, recipe.seed).module
    for place, own in places.items():
        greedy = place.mode == "greedy"  # recorded at temperature 1
        heat = 1.0 if greedy else stage.rollout.temperature
        yield from _place(module, stage, (place, own), temperature=heat)


def bound(recipe: Recipe) -> float:
    """The largest gap, in nats, that rounding explains."""
    stage, model = recipe.stages[-1], recipe.fields.model
    precise = stage.trainer.precision == "fp32" and getattr(model, "dtype", "fp32") == "fp32"
    whole = getattr(model, "quantize", None) is None
    same = stage.rollout.engine.part_name == "native"
    return EXACT_NATS if precise and whole and same else ROUNDED_NATS


def _place(
    module: PolicyModule,
    stage: Stage,
    measured: tuple[Place, Sequence[Attempt]],
    *,
    temperature: float,
) -> Iterator[Gap]:
    import torch

    from agentrecipes.training.batch import collected_batch, packed
    from agentrecipes.training.rows import trajectory_rows

    place, attempts = measured
    nobody = Task("", place.split, "")
    trajectories = [restored(each, nobody) for each in attempts]
    rows = trajectory_rows(trajectories)
    batch = collected_batch(rows, [Scored(each, {}, 0.0, ()) for each in trajectories], 0.0)
    numbers = range(len(rows))
    for part, micro in packed(rows, batch, numbers, trainer=stage.trainer, most=len(rows)):
        with torch.no_grad():
            logp = module(micro.strip, temperature=temperature).logp
        own = micro.batch
        gap = torch.where(own.action_mask, (logp - own.logp_rollout).abs(), 0.0)
        for number, row in enumerate(part):
            attempt = attempts[rows[row].trajectory]
            for turn, most in _by_turn(gap[number], own.turn_index[number]).items():
                yield place, attempt, turn, most


def _by_turn(gap: Tensor, turn_index: Tensor) -> dict[int, float]:
    """Turn → the largest gap of its action tokens; (T,) both."""
    found: dict[int, float] = {}
    pairs: Any = zip(gap.tolist(), turn_index.tolist(), strict=True)
    for value, turn in pairs:
        if turn >= 0:
            found[turn] = max(found.get(turn, 0.0), value)
    return found
