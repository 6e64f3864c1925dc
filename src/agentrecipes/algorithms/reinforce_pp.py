"""REINFORCE++: a batch as its own baseline."""

from __future__ import annotations

from typing import ClassVar

from agentrecipes.algorithms import composition, credit, fields
from agentrecipes.algorithms.protocol import Needs
from agentrecipes.components import Component, component


@component("algorithm")
class ReinforcePP(Component):
    """Clipped surrogate on whitened rewards-to-go; mean over the step's action tokens.

    Hu et al. 2025, https://arxiv.org/abs/2501.03262. The paper takes a KL term off the reward; here
    it is off unless the recipe writes it.
    """

    clip_low: fields.ClipLow = 0.2
    clip_high: fields.ClipHigh = 0.2
    dual_clip: fields.DualClip = None
    gamma: fields.Gamma = 1.0
    whiten: fields.Whiten = True
    aggregation: fields.Aggregation = "token_mean"
    max_tokens: fields.MaxTokens = None
    entropy: fields.Entropy = 0.0
    kl: fields.Kl = fields.Kl()
    importance: fields.Importance | None = None

    rules: ClassVar = fields.field_rules
    observe: ClassVar = fields.observe_kl
    value_targets: ClassVar = credit.no_value_targets
    advantages: ClassVar = credit.reward_to_go
    loss: ClassVar = composition.clipped_loss

    @property
    def needs(self) -> Needs:
        """A reference with a KL term."""
        return composition.needs(self)
