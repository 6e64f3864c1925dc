"""Supervised fine-tuning: imitation of written demonstrations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from agentrecipes.algorithms import credit, fields
from agentrecipes.algorithms.protocol import Loss, Needs, Outputs
from agentrecipes.components import Component, Fields, component
from agentrecipes.errors import Problem
from agentrecipes.numerics.masked import masked

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from agentrecipes.records import Batch
else:
    import lazy_loader

    torch = lazy_loader.load("torch")

Inside = Annotated[float, Field(gt=0.0, lt=1.0)]


class Learned(Fields):
    """A share of the thoughts that is learned with the policy, between two bounds.

    Without them descent would give all the weight to what is easier: ∂L/∂α = L_t − L_f. Here α =
    least + (most − least)·σ(w), and w is trained at the stage's learning rate, without decay.
    """

    start: Inside = 0.7  # the share at first
    least: Inside = 0.3  # it never falls below this
    most: Inside = 0.9  # nor rises above this

    @property
    def has_room(self) -> bool:
        """The share can move both ways."""
        return self.least < self.start < self.most

    def logit(self) -> float:
        """w at first."""
        share = (self.start - self.least) / (self.most - self.least)
        return math.log(share / (1.0 - share))

    def share(self, logit: Tensor) -> Tensor:
        """α of w."""
        return self.least + (self.most - self.least) * torch.sigmoid(logit)


@component("algorithm")
class SFT(Component):
    """Weighted cross-entropy; mean over the step's token weight: −Σ w·log π / Σ w.

    An action token weighs what its turn weighs in the demonstration: a turn of weight 0, a marked
    mistake, teaches nothing (STeP, https://arxiv.org/abs/2505.20023). With `balance`, the mean over
    a demonstration's thoughts and that over its other actions have shares of their own, and every
    demonstration weighs 1 (FunReason, https://arxiv.org/abs/2505.20192): L = α·L_t + (1 − α)·L_f.
    α is a number, or learned between bounds: ``balance: {start: 0.7, least: 0.3, most: 0.9}``.
    """

    observation_weight: Annotated[float, Field(ge=0.0)] = 0.0  # of prompt and observation tokens
    balance: Annotated[float, Field(ge=0.0, le=1.0)] | Learned | None = (
        None  # share of the thoughts in each demonstration, or how it is learned; null: all alike
    )
    thought_end: Annotated[str, Field(min_length=1)] = "</think>"  # a turn's thought ends with it

    value_targets: ClassVar = credit.no_value_targets

    def rules(self, stage: Any) -> Iterable[Problem]:
        """Fields that would mean nothing beside the others."""
        if self.balance is None and self.thought_end != "</think>":
            yield fields.no_effect("thought_end", "without balance")
        if self.balance is not None and self.observation_weight:
            yield fields.no_effect("observation_weight", "with balance: actions alone are weighed")
        if isinstance(self.balance, Learned) and not self.balance.has_room:
            own = self.balance
            found = (
                f"start: {own.start:g} is not between {own.least:g} (least) and {own.most:g} (most)"
            )
            yield Problem("contradiction", "balance", found, "Leave room on both sides of `start`.")

    @property
    def needs(self) -> Needs:
        """Demonstrations; a parameter of its own where the balance is learned."""
        return Needs(demonstrations=True, own=isinstance(self.balance, Learned))

    def own_parameters(self) -> Mapping[str, Tensor]:
        """The learned balance before its sigmoid."""
        assert isinstance(self.balance, Learned)
        return {"balance": torch.tensor(self.balance.logit())}

    def advantages(self, batch: Batch) -> Tensor:
        """(B, T) zeros: imitation has no advantage."""
        return batch.logp_old.new_zeros(batch.action_mask.shape)

    def loss(self, outputs: Outputs, batch: Batch) -> Loss:
        """−Σ token_weight · logp / total_weight; what weighs nothing may be anything.

        `token_weight` has the balance's start in it: a learned balance takes that out again.
        """
        weight, whole = batch.token_weight, batch.total_weight or 1.0  # (B, T)
        logp = masked(outputs.logp, weight > 0)
        if not isinstance(self.balance, Learned):
            total = -(weight * logp).sum() / whole
            return Loss(total, {"nll": total.detach()})
        if "balance" not in outputs.own or not batch.segment.numel():
            raise ValueError("sft needs its own balance and every token's segment to learn it")
        share, start = self.balance.share(outputs.own["balance"]), self.balance.start
        thought, rest = batch.segment == 1, batch.segment == 2  # (B, T)
        moved = torch.where(rest, (1.0 - share) / (1.0 - start), torch.ones_like(weight))
        moved = torch.where(thought, share / start, moved)
        total = -(weight * moved * logp).sum() / whole
        mean = (share * weight.sum() / whole).detach()  # adds up to the share itself
        return Loss(total, {"nll": total.detach(), "balance": mean})

    def observe(self, state: Mapping[str, Any], metrics: Mapping[str, float]) -> Mapping[str, Any]:
        """The state as it is."""
        return state
