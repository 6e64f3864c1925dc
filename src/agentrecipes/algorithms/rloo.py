"""REINFORCE with a leave-one-out baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from agentrecipes.algorithms import composition, credit, fields
from agentrecipes.algorithms.protocol import Needs
from agentrecipes.components import Component, component
from agentrecipes.numerics import advantages

if TYPE_CHECKING:
    from torch import Tensor

    from agentrecipes.records import Batch


@component("algorithm")
class RLOO(Component):
    """Clipped surrogate on leave-one-out advantages; mean over the step's action tokens.

    Ahmadian et al. 2024, https://arxiv.org/abs/2402.14740. The paper's loss is REINFORCE's over
    whole answers; the clipped surrogate has that gradient at ratio 1, and bounds it elsewhere.
    """

    clip_low: fields.ClipLow = 0.2
    clip_high: fields.ClipHigh = 0.2
    dual_clip: fields.DualClip = None
    aggregation: fields.Aggregation = "token_mean"
    max_tokens: fields.MaxTokens = None
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
        """(B, T) R minus the mean return of the others in the group; 0 in a degenerate group."""
        returns = credit.penalised_returns(batch, self.kl)
        return credit.spread(advantages.leave_one_out(returns, batch.group), batch)
