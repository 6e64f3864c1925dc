"""Recipe → Experiment: what each line of a recipe becomes."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path

from agentrecipes.recipe.load import Recipe
from agentrecipes.recipe.rules import parts_in
from agentrecipes.tracking.opening import tracker
from agentrecipes.tracking.protocol import NullTracker, Tracker, Within
from agentrecipes.tracking.tables import Tables
from agentrecipes.training.policy import Policy
from agentrecipes.training.ranks import leads
from agentrecipes.training.reuse import Stages


@dataclass(frozen=True, slots=True)
class RunPlace:
    """Where a run lives: ``runs/rag_r1-20261121-074500-3fa9c1`` in ``runs``."""

    runs: Path
    folder: Path
    within: Within = field(default_factory=Within)
    stages: Stages | None = None  # where the run keeps stages for others

    @property
    def name(self) -> str:
        return self.folder.name

    @classmethod
    def new(cls, recipe: Recipe, runs: Path) -> RunPlace:
        """A folder that no other run has, not even one started in the same second."""
        stamp = time.strftime("%Y%m%d-%H%M%S")
        return cls(runs, runs / f"{recipe.name}-{stamp}-{secrets.token_hex(3)}")


@dataclass(frozen=True, slots=True)
class Experiment:
    """A recipe with everything that carries it out; ``experiment.run`` does."""

    recipe: Recipe
    place: RunPlace
    policy: Policy
    tables: Tables
    tracker: Tracker


def compile_recipe(recipe: Recipe, place: RunPlace) -> Experiment:
    """The experiment that a recipe describes; weights are built, nothing is written yet.

    Raises:
        MissingExtra: an engine or a reward needs what is not installed.
    """
    for _, part in parts_in(recipe.fields):
        if hasattr(part, "require"):
            part.require()
    return Experiment(
        recipe=recipe,
        place=place,
        policy=Policy.build(recipe.fields.model, recipe.seed),
        tables=Tables(place.folder / "tables" if leads() else None, place.name),
        tracker=tracker(recipe.fields.tracking, place.runs) if leads() else NullTracker(),
    )
