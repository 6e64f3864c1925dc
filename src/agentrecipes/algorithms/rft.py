"""Rejection sampling fine-tuning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from agentrecipes.algorithms import composition, credit
from agentrecipes.algorithms.protocol import Loss, Needs, Outputs
from agentrecipes.components import Component, component
from agentrecipes.numerics import aggregation
from agentrecipes.numerics.masked import masked

if TYPE_CHECKING:
    from torch import Tensor

    from agentrecipes.records import Batch


@component("algorithm")
class RFT(Component):
    """−log π of one's own successes; mean over their action tokens in the iteration.

    Yuan et al. 2023, https://arxiv.org/abs/2308.01825; iterated as in ReST-EM, Singh et al. 2023,
    https://arxiv.org/abs/2312.06585. With `balance` each success weighs 1, and the mean over its
    thoughts and that over its calls have shares of their own, as ``sft`` has them: the rounds of
    FunReason's self-refinement (Hao et al. 2025, https://arxiv.org/abs/2505.20192).
    """

    at_least: Annotated[
        float, Field(description="The smallest total reward that counts as a success.")
    ] = 1.0
    balance: Annotated[float, Field(ge=0.0, le=1.0)] | None = (
        None  # share of the thoughts in each success; null: all its tokens alike
    )

    value_targets: ClassVar = credit.no_value_targets

    @property
    def needs(self) -> Needs:
        """Nothing but segments to balance; what has failed is not computed."""
        return Needs(every_row=False, segments=self.balance is not None)

    def advantages(self, batch: Batch) -> Tensor:
        """(B, T) all action tokens over those of successes, on these; 0 on those of failures."""
        good = credit.finite(batch) & (batch.returns >= self.at_least)  # (N,)
        kept = credit.on_tokens(good.double(), batch)
        if self.balance is not None:
            return self._balanced(good, kept, batch).to(batch.logp_old.dtype)
        scale = batch.action_tokens / kept.sum().clamp(min=1.0)
        return (kept * scale).to(batch.logp_old.dtype)

    def _balanced(self, good: Tensor, kept: Tensor, batch: Batch) -> Tensor:
        """(B, T) shares of each success's two segments, times action tokens over successes."""
        if not batch.segment.numel():
            raise ValueError("rft needs every token's segment to balance them")
        balance = self.balance or 0.0
        parts = [(batch.segment == n) * kept for n in (1, 2)]  # (B, T) thought, rest
        whose = batch.trajectory
        counts = [
            good.double().new_zeros(len(good)).index_add(0, whose, part.sum(dim=1))
            for part in parts
        ]  # (N,) tokens
        alone = (counts[0] == 0) | (counts[1] == 0)
        weight = kept * 0.0
        for part, count, share in zip(parts, counts, (balance, 1.0 - balance), strict=True):
            each = alone.double() + (~alone).double() * share
            weight = weight + part * (each / count.clamp(min=1.0))[whose][:, None]
        return weight * (batch.action_tokens / good.sum().clamp(min=1.0))

    def loss(self, outputs: Outputs, batch: Batch) -> Loss:
        """−A·log π, a mean over action tokens; the figure `kept` is the share of successes."""
        mask = batch.action_mask
        cost = -masked(batch.advantage, mask) * masked(outputs.logp, mask)
        total = aggregation.token_mean(cost, mask, action_tokens=batch.action_tokens)
        kept = composition.token_share((batch.advantage > 0).to(total.dtype), batch)
        return Loss(total, {"nll": total.detach(), "kept": kept})

    def observe(self, state: Mapping[str, Any], metrics: Mapping[str, float]) -> Mapping[str, Any]:
        """The state as it is."""
        return state
