"""Group relative policy optimisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from agentrecipes.algorithms import composition, credit, fields
from agentrecipes.algorithms.protocol import Needs
from agentrecipes.components import Component, component

if TYPE_CHECKING:
    from torch import Tensor

    from agentrecipes.records import Batch


@component("algorithm")
class GRPO(Component):
    """Clipped surrogate without a critic; mean over trajectories of the mean over their tokens.

    Shao et al. 2024, eq. 3, https://arxiv.org/abs/2402.03300. The std is the sample's (n − 1), as
    in verl and TRL; the KL term is off unless the recipe writes it.
    """

    clip_low: fields.ClipLow = 0.2
    clip_high: fields.ClipHigh = 0.2
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
    loss: ClassVar = composition.clipped_loss

    @property
    def needs(self) -> Needs:
        """Groups; a reference with a KL term."""
        return composition.needs(self, groups=True)

    def advantages(self, batch: Batch) -> Tensor:
        """(B, T) (R − μ)/(σ + ε) of the trajectory in its group; 0 in a degenerate group."""
        return credit.group_relative(self, batch)
