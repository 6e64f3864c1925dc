"""Decoupled clip and dynamic sampling policy optimisation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from agentrecipes.algorithms import composition, credit, fields
from agentrecipes.algorithms.protocol import Needs
from agentrecipes.components import Component, component


@component("algorithm")
class DAPO(Component):
    """Clip-higher surrogate without a critic or KL; mean over the step's action tokens.

    Yu et al. 2025, eq. 8, https://arxiv.org/abs/2503.14476; there the mean is over one group's
    tokens. Dynamic sampling, a ``rollout.sampling``, and the overlong penalty, a reward, come as
    defaults of the stage.
    """

    stage_defaults: ClassVar[Mapping[str, Any]] = {
        "rollout": {"sampling": "dynamic"},
        "rewards": [{"name": "length"}],
    }

    clip_low: fields.ClipLow = 0.2
    clip_high: fields.ClipHigh = 0.28
    dual_clip: fields.DualClip = None
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
    loss: ClassVar = composition.clipped_loss

    @property
    def needs(self) -> Needs:
        """Groups; a reference with a KL term."""
        return composition.needs(self, groups=True)
