"""The parts that losses are composed of: aggregation, importance weights, KL, entropy, value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from agentrecipes.algorithms.fields import MAX_TOKENS, Importance, Kl
from agentrecipes.algorithms.protocol import Loss, Needs, Outputs
from agentrecipes.numerics import aggregation, divergences, ratios
from agentrecipes.numerics.masked import masked

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from agentrecipes.records import Batch
else:
    import lazy_loader

    torch = lazy_loader.load("torch")


class Composed(Protocol):
    """The fields that every policy loss is composed by."""

    @property
    def aggregation(self) -> aggregation.Aggregation: ...
    @property
    def max_tokens(self) -> int | None: ...
    @property
    def entropy(self) -> float: ...
    @property
    def kl(self) -> Kl: ...
    @property
    def importance(self) -> Importance | None: ...


class Clipped(Composed, Protocol):
    """The fields of PPO's surrogate."""

    @property
    def clip_low(self) -> float | None: ...
    @property
    def clip_high(self) -> float | None: ...
    @property
    def dual_clip(self) -> float | None: ...


class Valued(Protocol):
    """The fields of a value loss."""

    @property
    def value_clip(self) -> float | None: ...
    @property
    def value_coefficient(self) -> float: ...


def needs(part: Composed, **more: bool) -> Needs:
    """What the composed terms need, and `more`.

    Without KL, entropy and value, the loss of a row is its objective: 0 where the advantage is.
    """
    reference, entropy = part.kl.place != "none", part.entropy > 0
    every_row = reference or entropy or more.get("value", False)
    more["detached_value"] = getattr(part, "value_trunk", "") == "detached"
    more["own_trunk"] = getattr(part, "value_trunk", "") == "own"
    return Needs(reference=reference, entropy=entropy, every_row=every_row, **more)


def aggregate(part: Composed, x: Tensor, batch: Batch) -> Tensor:
    """The share of this micro-batch in the mean of `x` (B, T) that the part's aggregation names."""
    mask = batch.action_mask
    if part.aggregation == "token_mean":
        return aggregation.token_mean(x, mask, action_tokens=batch.action_tokens)
    if part.aggregation == "sequence_mean":
        return aggregation.sequence_mean(x, mask, batch.trajectory, sequences=batch.sequences)
    return aggregation.sequence_sum_norm(
        x, mask, sequences=batch.sequences, max_tokens=part.max_tokens or MAX_TOKENS
    )


def clipped_loss(part: Clipped, outputs: Outputs, batch: Batch) -> Loss:
    """PPO's clipped surrogate on `batch.advantage`, with KL and entropy."""
    log_ratio = ratios.log_ratio(outputs.logp, batch.logp_old, batch.action_mask)
    return surrogate_loss(part, log_ratio, outputs=outputs, batch=batch)


def surrogate_loss(part: Clipped, log_ratio: Tensor, *, outputs: Outputs, batch: Batch) -> Loss:
    """The clipped surrogate of any ratio: a token's, or its trajectory's. `log_ratio` (B, T)."""
    ratio, advantage = log_ratio.exp(), masked(batch.advantage, batch.action_mask)
    low, high = part.clip_low, part.clip_high
    objective = ratios.clipped_surrogate(
        ratio, advantage, clip_low=low, clip_high=high, dual_clip=part.dual_clip
    )
    clipped = ratios.is_clipped(ratio, advantage, clip_low=low, clip_high=high)
    loss = composed_loss(part, objective, outputs=outputs, batch=batch)
    return with_term(loss, "clip_fraction", token_share(clipped, batch))


def composed_loss(part: Composed, objective: Tensor, *, outputs: Outputs, batch: Batch) -> Loss:
    """Minus the aggregated objective (B, T), plus KL, minus entropy; aggregated in the same way.

    Importance weights multiply the objective alone. The terms are shares of the optimizer step's
    means, like the loss: summed over micro-batches they give the step's figures.
    """
    policy = aggregate(part, -objective * _importance(part, batch), batch)
    total, moved = policy, _moved(outputs, batch)
    terms = {"policy": policy.detach(), "update_kl": token_share(moved, batch)}
    if part.kl.place != "none":
        kl = divergences.kl(outputs.logp, batch.logp_ref, batch.action_mask, estimator=part.kl.kind)
        terms["kl"] = token_share(kl, batch)
        if part.kl.place == "loss":
            total = total + batch.kl_coefficient * aggregate(part, kl, batch)
    if part.entropy > 0:
        if outputs.entropy is None:
            raise ValueError(
                f"{_name(part)} needs the entropy of every action token: none is given"
            )
        total = total - part.entropy * aggregate(part, outputs.entropy, batch)
        terms["entropy"] = token_share(outputs.entropy, batch)
    return Loss(total, terms)


def with_term(loss: Loss, name: str, term: Tensor) -> Loss:
    """The loss with one more number for the log."""
    return Loss(loss.total, {**loss.terms, name: term.detach()})


def with_value(part: Valued, loss: Loss, value: Tensor) -> Loss:
    """The loss plus the weighted value loss, a scalar."""
    total = loss.total + part.value_coefficient * value
    return with_term(Loss(total, loss.terms), "value", value)


def value_error(part: Valued, outputs: Outputs, *, batch: Batch, where: Tensor) -> Tensor:
    """(B, T) ½·max((V − R)², (clip(V, V_old ± value_clip) − R)²) at `where`, 0 elsewhere.

    Schulman et al. 2017, https://arxiv.org/abs/1707.06347, with the clip of OpenAI's baselines.
    """
    if outputs.value is None:
        raise ValueError(f"{_name(part)} needs a value head, and there are no values of one")
    value, target = masked(outputs.value, where), masked(batch.value_target, where)
    error = (value - target).square()
    if part.value_clip is not None:
        old = masked(batch.values_old, where)
        near = value.clamp(old - part.value_clip, old + part.value_clip)
        error = torch.maximum(error, (near - target).square())
    return 0.5 * error


def token_share(x: Tensor, batch: Batch) -> Tensor:
    """This micro-batch's share of the mean over the step's action tokens; no gradient."""
    return aggregation.token_mean(
        x.detach().to(batch.logp_old.dtype), batch.action_mask, action_tokens=batch.action_tokens
    )


def _name(part: object) -> str:
    return str(getattr(part, "part_name", "the algorithm"))


def _importance(part: Composed, batch: Batch) -> Tensor:
    if part.importance is None:
        return torch.ones_like(batch.logp_old)
    return ratios.importance_weight(
        batch.logp_old - batch.logp_rollout,
        batch.action_mask,
        batch.trajectory,
        cap=part.importance.cap,
        level=part.importance.level,
    )


def _moved(outputs: Outputs, batch: Batch) -> Tensor:
    """(B, T) k3 of KL(π_old ‖ π): how far this iteration's updates went."""
    return divergences.kl(batch.logp_old, outputs.logp.detach(), batch.action_mask, estimator="k3")
