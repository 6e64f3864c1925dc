"""Tokens act, turns are valued."""

from __future__ import annotations

from typing import ClassVar

from agentrecipes.algorithms import composition, fields, turns
from agentrecipes.algorithms.protocol import Needs
from agentrecipes.components import Component, component


@component("algorithm")
class VLDAC(Component):
    """Clipped surrogate by token, GAE and values by turn; mean over action tokens.

    VL-DAC 2025, https://arxiv.org/abs/2508.04280, with its coefficients. The code drops the
    unclipped term of a whole micro-batch where one ratio is above 10; here dual_clip 10 does so by
    token. As there, the value head reads features without gradient.
    """

    clip_low: fields.ClipLow = 0.1
    clip_high: fields.ClipHigh = 0.1
    dual_clip: fields.DualClip = 10.0
    aggregation: fields.Aggregation = "token_mean"
    max_tokens: fields.MaxTokens = None
    whiten: fields.Whiten = False
    gamma: fields.Gamma = 0.99
    lam: fields.Lam = 0.95
    value_clip: fields.ValueClip = None
    value_coefficient: fields.ValueCoefficient = 0.5
    value_trunk: fields.ValueTrunk = "detached"
    entropy: fields.Entropy = 0.0
    kl: fields.Kl = fields.Kl(place="loss", estimator="k3", coefficient=0.04)
    importance: fields.Importance | None = None

    rules: ClassVar = fields.field_rules
    observe: ClassVar = fields.observe_kl
    advantages: ClassVar = turns.step_advantages
    value_targets: ClassVar = turns.step_targets
    loss: ClassVar = turns.step_loss

    @property
    def needs(self) -> Needs:
        """A value head, read by turn; a reference with a KL term."""
        return composition.needs(self, value=True, turns=True)
