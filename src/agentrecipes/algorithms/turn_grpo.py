"""GRPO with an advantage for each turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from agentrecipes.algorithms import composition, credit, fields, turns
from agentrecipes.algorithms.protocol import Needs
from agentrecipes.components import Component, component
from agentrecipes.numerics import advantages

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from agentrecipes.records import Batch
else:
    import lazy_loader

    torch = lazy_loader.load("torch")


@component("algorithm")
class TurnGRPO(Component):
    """Clipped surrogate on turn-level advantages; mean over trajectories of their token means.

    MT-GRPO, Zeng et al. 2025, https://arxiv.org/abs/2505.11821: A_k = Σ_{k ≤ l < K} γ^(l−k)·A^I_l +
    γ^(K−k)·A^O. A^I_l is the reward of turn l against the group's other trajectories that went on
    after l; A^O is the reward of the last turn K, outcome included, against the group's. The paper
    has one number of turns for all; here K is each trajectory's own.
    """

    gamma: fields.Gamma = 1.0
    clip_low: fields.ClipLow = 0.2
    clip_high: fields.ClipHigh = 0.2
    dual_clip: fields.DualClip = None
    aggregation: fields.Aggregation = "sequence_mean"
    max_tokens: fields.MaxTokens = None
    std: fields.Std = "sample"
    epsilon: fields.Epsilon = fields.EPSILON
    entropy: fields.Entropy = 0.0
    kl: fields.Kl = fields.Kl()
    importance: fields.Importance | None = None

    rules: ClassVar = fields.group_rules
    observe: ClassVar = fields.observe_kl
    value_targets: ClassVar = credit.no_value_targets
    loss: ClassVar = composition.clipped_loss

    @property
    def needs(self) -> Needs:
        """Groups and rewards by turn; a reference with a KL term."""
        return composition.needs(self, groups=True, turns=True)

    def advantages(self, batch: Batch) -> Tensor:
        """(B, T) the discounted sum of a turn's own and all later standardised rewards."""
        steps = turns.Steps.of(batch)
        rewards, taken = steps.rewards(batch, self.kl), steps.taken  # (N, K)
        last = taken.sum(dim=1, keepdim=True) - 1  # (N, 1)
        unknown = ~credit.finite(batch)
        relative = torch.zeros_like(rewards)
        for turn in range(rewards.shape[1]):
            goes_on = (last[:, 0] > turn) & ~unknown
            relative[:, turn] = self._relative(rewards[:, turn], batch.group, known=goes_on)
        if rewards.shape[1]:
            ends = last.clamp(min=0)
            known = (last[:, 0] >= 0) & ~unknown
            outcome = self._relative(rewards.gather(1, ends)[:, 0], batch.group, known=known)
            relative.scatter_(1, ends, outcome[:, None])
        by_turn = advantages.discounted(relative, self.gamma)
        return steps.spread(by_turn).to(batch.logp_old.dtype)

    def _relative(self, rewards: Tensor, group: Tensor, *, known: Tensor) -> Tensor:
        """(N,) each reward against those of its group that are known; 0 where it is not."""
        seen = torch.where(known, rewards, torch.nan)
        return advantages.group_advantages(seen, group, std=self.std, epsilon=self.epsilon)
