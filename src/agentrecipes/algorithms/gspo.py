"""Group sequence policy optimisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from agentrecipes.algorithms import composition, credit, fields
from agentrecipes.algorithms.protocol import Loss, Needs, Outputs
from agentrecipes.components import Component, component
from agentrecipes.numerics import ratios

if TYPE_CHECKING:
    from agentrecipes.records import Batch


@component("algorithm")
class GSPO(Component):
    """Clipped surrogate of the trajectory's ratio; mean over trajectories.

    Zheng et al. 2025, https://arxiv.org/abs/2507.18071, with the paper's clips. The ratio is the
    geometric mean over all action tokens of a trajectory, over all its turns and rows.
    """

    clip_low: fields.ClipLow = 3e-4
    clip_high: fields.ClipHigh = 4e-4
    dual_clip: fields.DualClip = None
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
        """Clipped surrogate of the sequence ratio + KL − entropy."""
        mask = batch.action_mask
        tokens = ratios.log_ratio(outputs.logp, batch.logp_old, mask)
        sequence = ratios.sequence_log_ratio(tokens, mask, batch.trajectory)  # (B, T)
        return composition.surrogate_loss(self, sequence, outputs=outputs, batch=batch)
