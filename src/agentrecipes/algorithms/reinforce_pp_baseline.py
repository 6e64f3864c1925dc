"""REINFORCE++ with the group's mean as baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from agentrecipes.algorithms import composition, credit, fields
from agentrecipes.algorithms.protocol import Needs
from agentrecipes.components import Component, component
from agentrecipes.numerics import advantages, masked

if TYPE_CHECKING:
    from torch import Tensor

    from agentrecipes.records import Batch


@component("algorithm")
class ReinforcePPBaseline(Component):
    """Clipped surrogate on R − μ, whitened over the batch; mean over the step's action tokens.

    Hu et al. 2025, https://arxiv.org/abs/2501.03262. Whitening would give a degenerate group the
    batch's mean; here it keeps 0, unlike in verl.
    """

    clip_low: fields.ClipLow = 0.2
    clip_high: fields.ClipHigh = 0.2
    dual_clip: fields.DualClip = None
    whiten: fields.Whiten = True
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
        """(B, T) R minus the group's mean, whitened over action tokens if `whiten`."""
        returns = credit.penalised_returns(batch, self.kl)
        centred = advantages.group_advantages(returns, batch.group, std="none")
        tokens = credit.on_tokens(centred, batch)  # (B, T) float64
        if self.whiten:
            signal = credit.on_tokens(advantages.has_signal(returns, batch.group), batch)
            tokens = masked.masked(masked.whiten(tokens, credit.trusted(batch)), signal)
        return tokens.to(batch.logp_old.dtype)
