"""The fields of a sweep file: types, ranges, defaults and, beside each, what it means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from agentrecipes.components import Fields
from agentrecipes.recipe.schema import Count, Positive


class Objective(Fields):
    """What a trial is judged by: one number from the evaluations of its runs."""

    metric: str  # a metric of the evaluation, or rounds_mean: the mean number of turns with tools
    mode: Literal["sampled", "greedy"] = "sampled"
    split: Literal["train", "dev", "test"] = "dev"
    stage: str | None = None  # whose evaluations count; null: the last stage's
    reduce: Literal["last", "best", "mean"] = "last"  # of the evaluations on the way
    direction: Literal["maximize", "minimize"] = "maximize"
    seeds: Positive = 1  # runs a trial, of the recipe's seed and those after it; their mean counts


class Sampler(Fields):
    """Who chooses a trial's values."""

    name: Literal["tpe", "nsga2", "qmc", "grid", "random"] = "tpe"
    seed: Count = 0
    startup: Positive = 10  # trials at random before tpe learns from results
    population: Annotated[int, Field(ge=2)] = 20  # trials a generation, for nsga2

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, data: Any) -> Any:
        return {"name": data} if isinstance(data, str) else data


class Pruner(Fields):
    """Who ends a trial early; it reads the curve of the evaluations."""

    name: Literal["median", "hyperband", "wilcoxon", "none"] = "none"
    startup: Count = 5  # trials that end before median stops another
    warmup: Count = 0  # evaluations of a trial that median lets pass; the first is before the stage
    reduction: Annotated[int, Field(ge=2)] = 3  # of hyperband: one in so many goes on
    p: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.1  # of wilcoxon: the level of its test

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, data: Any) -> Any:
        return {"name": data or "none"} if isinstance(data, str) or data is None else data


class Distribution(Fields):
    """The values that one dotted path of the recipe may take: exactly one of the first three."""

    float_: Annotated[tuple[float, float] | None, Field(alias="float")] = None  # both ends included
    int_: Annotated[tuple[int, int] | None, Field(alias="int")] = None  # both ends included
    choice: Annotated[tuple[Any, ...], Field(min_length=1)] | None = None  # plain values, mappings
    log: bool = False  # drawn evenly on the logarithm
    step: Annotated[float, Field(gt=0.0)] | None = None  # between neighbours
    when: Mapping[str, Any] = {}  # path of a choice → the value, or values, that it must have


class SweepFields(Fields):
    """One study."""

    recipe: str  # a file, seen from this file or from the current folder, or a shipped recipe
    profile: str | None = None  # of the recipe
    set: Mapping[str, Any] = {}  # dotted path → value, the same in every trial
    study: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_\-]*$")] = (
        None  # its name; null: this file's
    )
    objective: Annotated[tuple[Objective, ...], Field(min_length=1)]
    space: Annotated[Mapping[str, Distribution], Field(min_length=1)]
    sampler: Annotated[Sampler, Field(validate_default=True)] = Sampler()
    pruner: Annotated[Pruner, Field(validate_default=True)] = Pruner()
    storage: str | None = None  # an address for SQLAlchemy; null: sweeps.db in the runs folder
    trials: Positive | None = None  # null: as many as the grid has points
    retries: Count = 2  # times that a trial whose process was killed is tried again
    reuse: bool = True  # a stage that another trial ran with equal inputs is not run again

    @field_validator("objective", mode="before")
    @classmethod
    def _listed(cls, data: Any) -> Any:
        return [data] if isinstance(data, Mapping) else data

    @property
    def seeds(self) -> int:
        """Runs a trial."""
        return max(objective.seeds for objective in self.objective)
