"""Soft adaptive policy optimisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from agentrecipes.algorithms import composition, credit, fields
from agentrecipes.algorithms.protocol import Loss, Needs, Outputs
from agentrecipes.components import Component, component
from agentrecipes.numerics import masked, ratios

if TYPE_CHECKING:
    from agentrecipes.records import Batch


@component("algorithm")
class SAPO(Component):
    """A smooth gate on the ratio in place of a clip; mean over trajectories of their token means.

    Gao et al. 2025, https://arxiv.org/abs/2511.20347. A larger τ closes the gate sooner.
    """

    tau_positive: Annotated[float, Field(gt=0.0)] = 1.0  # steepness where the advantage is positive
    tau_negative: Annotated[float, Field(gt=0.0)] = 1.05  # and where it is not
    aggregation: fields.Aggregation = "sequence_mean"
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
        """−(4/τ)·σ(τ(ρ − 1))·A + KL − entropy."""
        mask = batch.action_mask
        objective = ratios.soft_gate(
            ratios.log_ratio(outputs.logp, batch.logp_old, mask).exp(),
            masked.masked(batch.advantage, mask),
            tau_positive=self.tau_positive,
            tau_negative=self.tau_negative,
        )
        return composition.composed_loss(self, objective, outputs=outputs, batch=batch)
