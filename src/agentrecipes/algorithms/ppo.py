"""Proximal policy optimisation with a value head."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from agentrecipes.algorithms import composition, credit, fields
from agentrecipes.algorithms.protocol import Loss, Needs, Outputs
from agentrecipes.components import Component, component
from agentrecipes.numerics import advantages, aggregation, masked

if TYPE_CHECKING:
    from torch import Tensor

    from agentrecipes.records import Batch


@component("algorithm")
class PPO(Component):
    """Clipped surrogate, GAE over action tokens, value head; mean over the step's action tokens.

    Schulman et al. 2017, https://arxiv.org/abs/1707.06347. Observation tokens take part in nothing:
    neither in GAE nor in whitening nor in the value loss, unlike in RAG-R1 and Search-R1. The value
    loss is always a mean over action tokens.
    """

    clip_low: fields.ClipLow = 0.2
    clip_high: fields.ClipHigh = 0.2
    dual_clip: fields.DualClip = None
    aggregation: fields.Aggregation = "token_mean"
    max_tokens: fields.MaxTokens = None
    whiten: fields.Whiten = True
    gamma: fields.Gamma = 1.0
    lam: fields.Lam = 1.0
    value_clip: fields.ValueClip = None
    value_coefficient: fields.ValueCoefficient = 0.5
    value_trunk: fields.ValueTrunk = "shared"
    entropy: fields.Entropy = 0.0
    kl: fields.Kl = fields.Kl()
    importance: fields.Importance | None = None

    rules: ClassVar = fields.field_rules
    observe: ClassVar = fields.observe_kl

    @property
    def needs(self) -> Needs:
        """A value head; a reference with a KL term."""
        return composition.needs(self, value=True)

    def advantages(self, batch: Batch) -> Tensor:
        """(B, T) GAE on action tokens, whitened if `whiten`; 0 where the return is not finite."""
        advantage = self._estimate(batch)
        if self.whiten:
            advantage = masked.whiten(advantage, credit.trusted(batch))
        return advantage.to(batch.logp_old.dtype)

    def value_targets(self, batch: Batch) -> Tensor:
        """(B, T) A + V_old before whitening; V_old where the return is not finite."""
        old = masked.masked(batch.values_old.double(), batch.action_mask)
        return (self._estimate(batch) + old).to(batch.values_old.dtype)

    def loss(self, outputs: Outputs, batch: Batch) -> Loss:
        """Clipped surrogate + value_coefficient · value loss + KL − entropy."""
        loss = composition.clipped_loss(self, outputs, batch)
        error = composition.value_error(self, outputs, batch=batch, where=batch.action_mask)
        value = aggregation.token_mean(error, batch.action_mask, action_tokens=batch.action_tokens)
        return composition.with_value(self, loss, value)

    def _estimate(self, batch: Batch) -> Tensor:
        at = credit.places(batch)
        rewards = credit.token_rewards(batch, at, self.kl)  # (N, L)
        values = at.pack(batch.values_old.double())  # (N, L)
        packed = advantages.gae(rewards, values, gamma=self.gamma, lam=self.lam)
        return masked.masked(at.unpack(packed), credit.trusted(batch))
