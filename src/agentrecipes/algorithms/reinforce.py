"""The plain policy gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from agentrecipes.algorithms import composition, credit, fields
from agentrecipes.algorithms.protocol import Loss, Needs, Outputs
from agentrecipes.components import Component, component
from agentrecipes.numerics import masked

if TYPE_CHECKING:
    from agentrecipes.records import Batch


@component("algorithm")
class Reinforce(Component):
    """−G·log π without ratio, clip or baseline; mean over the step's action tokens.

    Williams 1992, https://doi.org/10.1007/BF00992696. Meant for one update an iteration: with more
    of them the later ones are off-policy and nothing corrects that.
    """

    gamma: fields.Gamma = 1.0
    whiten: fields.Whiten = False
    aggregation: fields.Aggregation = "token_mean"
    max_tokens: fields.MaxTokens = None
    entropy: fields.Entropy = 0.0
    kl: fields.Kl = fields.Kl()
    importance: fields.Importance | None = None

    rules: ClassVar = fields.field_rules
    observe: ClassVar = fields.observe_kl
    value_targets: ClassVar = credit.no_value_targets
    advantages: ClassVar = credit.reward_to_go

    @property
    def needs(self) -> Needs:
        """A reference with a KL term."""
        return composition.needs(self)

    def loss(self, outputs: Outputs, batch: Batch) -> Loss:
        """−A·log π + KL − entropy."""
        mask = batch.action_mask
        objective = masked.masked(batch.advantage, mask) * masked.masked(outputs.logp, mask)
        return composition.composed_loss(self, objective, outputs=outputs, batch=batch)
