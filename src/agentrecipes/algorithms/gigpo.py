"""Group-in-group policy optimisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

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
class GiGPO(Component):
    """Clipped surrogate on A^E + ω·A^S; mean over trajectories of the mean over their tokens.

    Feng et al. 2025, https://arxiv.org/abs/2505.10978: A^E is GRPO's advantage of the trajectory;
    A^S compares a turn's discounted return with those of the group's turns that began in the same
    state. A state that occurs once has A^S = 0.
    """

    gamma: fields.Gamma = 0.95
    step_weight: Annotated[float, Field(ge=0.0)] = 1.0  # ω
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
        """Groups, rewards and states by turn; a reference with a KL term."""
        return composition.needs(self, groups=True, turns=True, states=True)

    def advantages(self, batch: Batch) -> Tensor:
        """(B, T) the trajectory's advantage plus ω times the turn's."""
        steps = turns.Steps.of(batch)
        taken = steps.taken  # (N, K) bool
        returns = advantages.discounted(steps.rewards(batch, self.kl), self.gamma)  # (N, K)
        returns = torch.where(credit.finite(batch)[:, None], returns, torch.nan)
        by_turn = torch.zeros_like(returns)
        by_turn[taken] = advantages.group_advantages(
            returns[taken], self._meetings(batch, steps), std=self.std, epsilon=self.epsilon
        )
        whole = credit.on_tokens(credit.relative_returns(self, batch), batch)
        return (whole + self.step_weight * steps.spread(by_turn)).to(batch.logp_old.dtype)

    def _meetings(self, batch: Batch, steps: turns.Steps) -> Tensor:
        """(M,) one number for each (group, state) pair, for every step taken."""
        taken = steps.taken
        turn = steps.opening.pack(batch.turn_index)  # (N, K) turn of each step
        state = batch.turn_state.gather(1, turn)  # (N, K)
        pairs = torch.stack([batch.group[:, None].expand_as(state)[taken], state[taken]], dim=1)
        number: Tensor = torch.unique(pairs, dim=0, return_inverse=True)[1]
        return number
