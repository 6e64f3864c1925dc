"""GRPO done right: without the two length biases."""

from __future__ import annotations

from typing import ClassVar

from agentrecipes.algorithms import composition, credit, fields
from agentrecipes.algorithms.protocol import Needs
from agentrecipes.components import Component, component


@component("algorithm")
class DrGRPO(Component):
    """Clipped surrogate on R − μ; sum over tokens by a constant, mean over trajectories.

    Liu et al. 2025, https://arxiv.org/abs/2503.20783. The constant is `max_tokens`; it scales the
    learning rate and nothing else.
    """

    clip_low: fields.ClipLow = 0.2
    clip_high: fields.ClipHigh = 0.2
    dual_clip: fields.DualClip = None
    aggregation: fields.Aggregation = "sequence_sum_norm"
    max_tokens: fields.MaxTokens = None
    std: fields.Std = "none"
    epsilon: fields.Epsilon = fields.EPSILON
    normalise: fields.Normalise = "total"
    entropy: fields.Entropy = 0.0
    kl: fields.Kl = fields.Kl()
    importance: fields.Importance | None = None

    rules: ClassVar = fields.group_rules
    observe: ClassVar = fields.observe_kl
    value_targets: ClassVar = credit.no_value_targets
    advantages: ClassVar = credit.group_relative
    loss: ClassVar = composition.clipped_loss

    @property
    def needs(self) -> Needs:
        """Groups; a reference with a KL term."""
        return composition.needs(self, groups=True)
