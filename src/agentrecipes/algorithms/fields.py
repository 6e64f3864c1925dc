"""The fields that algorithms share, each explained once, and what is wrong with them in a stage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field

from agentrecipes.components import Fields
from agentrecipes.errors import Problem
from agentrecipes.numerics import divergences
from agentrecipes.numerics.advantages import Std as StdName
from agentrecipes.numerics.aggregation import Aggregation as AggregationName
from agentrecipes.numerics.divergences import Estimator
from agentrecipes.numerics.ratios import Level

NonNegative = Annotated[float, Field(ge=0.0)]

ClipLow = Annotated[
    float | None,
    Field(ge=0.0, le=1.0, description="The ratio may fall to 1 - clip_low; null: no bound."),
]
ClipHigh = Annotated[
    float | None,
    Field(ge=0.0, description="The ratio may rise to 1 + clip_high; null: no bound."),
]
DualClip = Annotated[
    float | None,
    Field(gt=1.0, description="A negative advantage counts at most so often; null: any."),
]
Aggregation = Annotated[
    AggregationName,
    Field(
        description="A mean over the step's action tokens; over trajectories of the mean of their "
        "tokens; over trajectories of the sum over their tokens, by max_tokens."
    ),
]
MaxTokens = Annotated[
    int | None,
    Field(ge=1, description="The constant that sequence_sum_norm divides by; null: 2048."),
]
Std = Annotated[
    StdName,
    Field(description="What a group's advantages are divided by: a std (n - 1, or n) or 1."),
]
Epsilon = Annotated[float, Field(ge=0.0, description="Added to the group's std.")]
Normalise = Annotated[
    Literal["total", "parts"],
    Field(
        description="What is compared within a group: the total, or each reward by itself before "
        "they are summed by weight and whitened, so that none drowns another (GDPO)."
    ),
]
Whiten = Annotated[
    bool, Field(description="Scale the advantages of a batch's action tokens to mean 0, std 1.")
]
Discount = Annotated[float, Field(ge=0.0, le=1.0)]
Gamma = Annotated[Discount, Field(description="Discount of later rewards.")]
Lam = Annotated[Discount, Field(description="GAE: 1 trusts the rewards, 0 the value head.")]
ValueClip = Annotated[
    float | None,
    Field(gt=0.0, description="The value may move so far in one iteration; null: no bound."),
]
ValueCoefficient = Annotated[float, Field(ge=0.0, description="Weight of the value loss.")]
ValueTrunk = Annotated[
    Literal["shared", "detached", "own"],
    Field(
        description="What the value head stands on: the policy's network, which its loss trains "
        "too; that network, untouched; or a copy of it that the value loss alone trains."
    ),
]
Entropy = Annotated[float, Field(ge=0.0, description="Coefficient of the entropy bonus.")]

MAX_TOKENS = 2048  # where the recipe says null; the default of rollout.tokens
EPSILON = 1e-6
KL_COEFFICIENT = "kl_coefficient"  # key of an algorithm's state


class Kl(Fields):
    """How far the policy may go from the reference. What is null was not written."""

    place: Literal["reward", "loss", "none"] = "none"  # taken off each token's reward, or a loss
    estimator: Estimator | None = None  # null: k1 in the reward, k3 in the loss
    coefficient: NonNegative | None = None  # null: 0.001; where it adapts, the first one
    target: Annotated[float, Field(gt=0.0)] | None = None  # nats a token to adapt to; null: fixed
    horizon: Annotated[float, Field(gt=0.0)] | None = None  # in trajectories; null: 10000

    @property
    def kind(self) -> Estimator:
        """The estimator in force."""
        return self.estimator or ("k1" if self.place == "reward" else "k3")

    def in_force(self, state: Mapping[str, Any]) -> float:
        """The coefficient of the next iteration; `state` is what `observe` returned last, or {}."""
        if self.place == "none":
            return 0.0
        first = 0.001 if self.coefficient is None else self.coefficient
        return first if self.target is None else float(state.get(KL_COEFFICIENT, first))

    def observe(self, state: Mapping[str, Any], metrics: Mapping[str, float]) -> Mapping[str, Any]:
        """The state with the coefficient moved towards the target; as it was where none is set.

        Reads ``loss/kl`` (nats a token) and ``rollout/trajectories``.
        """
        if self.place == "none" or self.target is None or "loss/kl" not in metrics:
            return state
        moved = divergences.adapted(
            self.in_force(state),
            measured=metrics["loss/kl"],
            target=self.target,
            trajectories=metrics["rollout/trajectories"],
            horizon=self.horizon or 10000.0,
        )
        return {**state, KL_COEFFICIENT: moved}


class Importance(Fields):
    """Truncated weights: the trainer's over the sampler's probability of what was sampled."""

    cap: Annotated[float, Field(gt=0.0)] = 2.0  # largest weight
    level: Level = "token"  # of each token, or of the product over a trajectory's tokens


class HasKl(Protocol):
    """An algorithm with a KL term."""

    @property
    def kl(self) -> Kl: ...


def observe_kl(
    part: HasKl, state: Mapping[str, Any], metrics: Mapping[str, float]
) -> Mapping[str, Any]:
    """The state after an iteration: an adaptive KL coefficient has moved."""
    return part.kl.observe(state, metrics)


def no_effect(path: str, because: str) -> Problem:
    """The problem of a field that would do nothing where it is written."""
    return Problem(
        code="no_effect",
        path=path,
        message=f"{path.rpartition('.')[2]} has no effect {because}",
        suggestion="Leave it out.",
    )


def field_rules(part: Any, stage: Any) -> Iterable[Problem]:
    """Fields of an algorithm that were written and do nothing beside its other fields."""
    if part.max_tokens is not None and part.aggregation != "sequence_sum_norm":
        yield no_effect("max_tokens", f"with aggregation {part.aggregation!r}")
    if getattr(part, "std", "") == "none" and part.epsilon != EPSILON:
        yield no_effect("epsilon", "with std 'none'")
    if getattr(part, "value_clip", None) is not None and part.value_coefficient == 0:
        yield no_effect("value_clip", "with value_coefficient 0")
    yield from _kl_problems(part.kl)


def _kl_problems(kl: Kl) -> Iterable[Problem]:
    if kl.place == "none":
        for key in ("estimator", "coefficient", "target", "horizon"):
            if getattr(kl, key) is not None:
                yield no_effect(f"kl.{key}", "with kl.place 'none'")
        return
    if kl.horizon is not None and kl.target is None:
        yield no_effect("kl.horizon", "without kl.target")
    if kl.place == "loss" and kl.kind == "k1":
        yield Problem(
            code="no_gradient",
            path="kl.estimator",
            message="k1 as a loss has a mean gradient of zero",
            suggestion="Write k2 or k3, or place: reward.",
            severity="warning",
        )


def group_rules(part: Any, stage: Any) -> Iterable[Problem]:
    """A baseline from other attempts needs other attempts; and fields without effect."""
    yield from field_rules(part, stage)
    yield from group_size_rule(part, stage)
    if getattr(part, "normalise", "total") == "parts" and part.kl.place == "reward":
        found = "normalise: parts compares rewards one by one, and kl.place: reward adds to them"
        yield Problem("contradiction", "normalise", found, "Write `place: loss`.")


def group_size_rule(part: Any, stage: Any) -> Iterable[Problem]:
    """What compares attempts needs several of them."""
    size = stage.rollout.group_size
    if size < 2:
        yield Problem(
            code="group_size",
            path="",
            message=f"{part.part_name} compares the attempts at a task, but rollout.group_size is "
            f"{size}",
            suggestion="Write a group_size of 2 or more, or another algorithm: ppo, reinforce_pp.",
        )
