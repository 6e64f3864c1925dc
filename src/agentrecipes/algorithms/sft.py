"""Supervised fine-tuning: imitation of written demonstrations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from agentrecipes.algorithms import credit, fields
from agentrecipes.algorithms.protocol import Loss, Needs, Outputs
from agentrecipes.components import Component, component
from agentrecipes.errors import Problem
from agentrecipes.numerics.masked import masked

if TYPE_CHECKING:
    from torch import Tensor

    from agentrecipes.records import Batch


@component("algorithm")
class SFT(Component):
    """Weighted cross-entropy; mean over the step's token weight: −Σ w·log π / Σ w.

    An action token weighs what its turn weighs in the demonstration: a turn of weight 0, a marked
    mistake, teaches nothing (STeP, https://arxiv.org/abs/2505.20023). With `balance`, the mean over
    a demonstration's thoughts and that over its other actions have shares of their own, and every
    demonstration weighs 1 (FunReason, https://arxiv.org/abs/2505.20192).
    """

    observation_weight: Annotated[float, Field(ge=0.0)] = 0.0  # of prompt and observation tokens
    balance: Annotated[float, Field(ge=0.0, le=1.0)] | None = (
        None  # share of the thoughts in each demonstration; null: all its tokens alike
    )
    thought_end: Annotated[str, Field(min_length=1)] = "</think>"  # a turn's thought ends with it

    value_targets: ClassVar = credit.no_value_targets

    def rules(self, stage: Any) -> Iterable[Problem]:
        """Fields that would mean nothing beside the others."""
        if self.balance is None and self.thought_end != "</think>":
            yield fields.no_effect("thought_end", "without balance")
        if self.balance is not None and self.observation_weight:
            yield fields.no_effect("observation_weight", "with balance: actions alone are weighed")

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
