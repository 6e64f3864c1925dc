"""A control: any algorithm, but the rewards of a group's attempts have changed hands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor

from agentrecipes.algorithms.fields import Kl
from agentrecipes.algorithms.protocol import Algorithm, Loss, Needs, Outputs
from agentrecipes.components import Component, build, component
from agentrecipes.records import Batch


@component("algorithm")
class Shuffled(Component):
    """Trains as `of` does on rewards that say nothing about who earned them.

    With `within: group` each group keeps its rewards, dealt out again among its attempts; that a
    group did better than others is still told, and an algorithm whose baseline is not the group's
    hears it. With `within: batch` rewards are dealt out among all attempts.
    """

    of: str = "grpo"  # name of the algorithm
    within: Literal["group", "batch"] = "group"
    seed: int = 0

    @cached_property
    def _inner(self) -> Algorithm:
        made: Algorithm = build("algorithm", {"name": self.of})
        return made

    @property
    def needs(self) -> Needs:
        """Those of the algorithm."""
        return self._inner.needs

    @property
    def kl(self) -> Kl:
        """Its KL term, or none."""
        found = getattr(self._inner, "kl", Kl())
        assert isinstance(found, Kl)
        return found

    def advantages(self, batch: Batch) -> Tensor:
        """(B, T) the algorithm's, of the dealt rewards."""
        return self._inner.advantages(self._dealt(batch))

    def value_targets(self, batch: Batch) -> Tensor:
        """(B, T) the algorithm's, of the dealt rewards."""
        return self._inner.value_targets(self._dealt(batch))

    def loss(self, outputs: Outputs, batch: Batch) -> Loss:
        """The algorithm's."""
        return self._inner.loss(outputs, batch)

    def observe(self, state: Mapping[str, Any], metrics: Mapping[str, float]) -> Mapping[str, Any]:
        """The algorithm's."""
        return self._inner.observe(state, metrics)

    def _dealt(self, batch: Batch) -> Batch:
        random = torch.Generator().manual_seed(self.seed + int(batch.action_tokens))
        order = torch.arange(len(batch.returns))
        groups = batch.group if self.within == "group" else torch.zeros_like(batch.group)
        for group in groups.unique():
            own = torch.nonzero(groups == group).flatten()
            order[own] = own[torch.randperm(len(own), generator=random)]
        totals = batch.returns[order]
        last = torch.zeros_like(batch.turn_rewards)  # all of it on each attempt's own last turn
        turns = torch.zeros(len(totals), dtype=torch.int64)
        at = batch.turn_index.amax(dim=1).clamp(min=0)
        turns.scatter_reduce_(0, batch.trajectory, at, "amax")
        last[torch.arange(len(totals)), turns] = totals.to(last.dtype)
        return replace(batch, returns=totals, turn_rewards=last)
