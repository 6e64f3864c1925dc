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
    https://arxiv.org/abs/2312.06585.
    """

    at_least: Annotated[
        float, Field(description="The smallest total reward that counts as a success.")
    ] = 1.0

    value_targets: ClassVar = credit.no_value_targets

    @property
    def needs(self) -> Needs:
        """Nothing; what has failed is not computed."""
        return Needs(every_row=False)

    def advantages(self, batch: Batch) -> Tensor:
        """(B, T) all action tokens over those of successes, on these; 0 on those of failures."""
        good = credit.finite(batch) & (batch.returns >= self.at_least)  # (N,)
        kept = credit.on_tokens(good.double(), batch)
        scale = batch.action_tokens / kept.sum().clamp(min=1.0)
        return (kept * scale).to(batch.logp_old.dtype)

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
