"""Supervised fine-tuning: imitation of written demonstrations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from agentrecipes.algorithms import credit
from agentrecipes.algorithms.protocol import Loss, Needs, Outputs
from agentrecipes.components import Component, component
from agentrecipes.numerics.masked import masked

if TYPE_CHECKING:
    from torch import Tensor

    from agentrecipes.records import Batch


@component("algorithm")
class SFT(Component):
    """Weighted cross-entropy; mean over the step's token weight: −Σ w·log π / Σ w.

    An action token weighs what its turn weighs in the demonstration.
    """

    observation_weight: Annotated[float, Field(ge=0.0)] = 0.0  # of prompt and observation tokens

    value_targets: ClassVar = credit.no_value_targets

    @property
    def needs(self) -> Needs:
        """Demonstrations."""
        return Needs(demonstrations=True)

    def advantages(self, batch: Batch) -> Tensor:
        """(B, T) zeros: imitation has no advantage."""
        return batch.logp_old.new_zeros(batch.action_mask.shape)

    def loss(self, outputs: Outputs, batch: Batch) -> Loss:
        """−Σ token_weight · logp / total_weight; what weighs nothing may be anything."""
        weight = batch.token_weight  # (B, T)
        total = -(weight * masked(outputs.logp, weight > 0)).sum() / (batch.total_weight or 1.0)
        return Loss(total, {"nll": total.detach()})

    def observe(self, state: Mapping[str, Any], metrics: Mapping[str, float]) -> Mapping[str, Any]:
        """The state as it is."""
        return state
