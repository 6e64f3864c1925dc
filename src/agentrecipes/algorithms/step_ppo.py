"""PPO over steps: a turn is one action of the agent."""

from __future__ import annotations

from typing import ClassVar

from agentrecipes.algorithms import composition, fields, turns
from agentrecipes.algorithms.protocol import Needs
from agentrecipes.components import Component, component


@component("algorithm")
class StepPPO(Component):
    """Clipped surrogate by token, GAE and values by turn; mean over action tokens.

    Agent-R1 v0.1 (Cheng et al. 2025, https://arxiv.org/abs/2511.14460): a turn's value is that of
    its prompt; its advantage, whitened over turns, goes to all its action tokens. The value loss is
    a mean over turns.
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
    advantages: ClassVar = turns.step_advantages
    value_targets: ClassVar = turns.step_targets
    loss: ClassVar = turns.step_loss

    @property
    def needs(self) -> Needs:
        """A value head, read by turn; a reference with a KL term."""
        return composition.needs(self, value=True, turns=True)
