"""Clipped importance sampling policy optimisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from agentrecipes.algorithms import composition, credit, fields
from agentrecipes.algorithms.protocol import Loss, Needs, Outputs
from agentrecipes.components import Component, component
from agentrecipes.numerics import masked, ratios

if TYPE_CHECKING:
    from agentrecipes.records import Batch


@component("algorithm")
class CISPO(Component):
    """REINFORCE with a clipped, detached ratio as weight; mean over the step's action tokens.

    MiniMax 2025, https://arxiv.org/abs/2506.13585. No token loses its gradient. The ratio
    has no lower bound, as in the paper, and is 5 at most, as in TRL.
    """

    clip_low: fields.ClipLow = None
    clip_high: fields.ClipHigh = 4.0
    aggregation: fields.Aggregation = "token_mean"
    max_tokens: fields.MaxTokens = None
    std: fields.Std = "sample"
    epsilon: fields.Epsilon = fields.EPSILON
    normalise: fields.Normalise = "total"
    entropy: fields.Entropy = 0.0
    kl: fields.Kl = fields.Kl()
    importance: fields.Importance | None = None

    rules: ClassVar = fields.group_rules
    observe: ClassVar = fields.observe_kl
    value_targets: ClassVar = credit.no_value_targets
    advantages: ClassVar = credit.group_relative

    @property
    def needs(self) -> Needs:
        """Groups; a reference with a KL term."""
        return composition.needs(self, groups=True)

    def loss(self, outputs: Outputs, batch: Batch) -> Loss:
        """−sg(clip(ρ))·A·log π + KL − entropy."""
        mask = batch.action_mask
        ratio = ratios.log_ratio(outputs.logp, batch.logp_old, mask).exp().detach()  # (B, T)
        weight = ratios.clip(ratio, self.clip_low, self.clip_high)
        objective = (
            weight * masked.masked(batch.advantage, mask) * masked.masked(outputs.logp, mask)
        )
        loss = composition.composed_loss(self, objective, outputs=outputs, batch=batch)
        clipped = composition.token_share(weight != ratio, batch)
        return composition.with_term(loss, "clip_fraction", clipped)
