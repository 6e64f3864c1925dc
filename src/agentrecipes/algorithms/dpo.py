"""Direct preference optimisation on the policy's own trajectories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from agentrecipes.algorithms import credit, fields
from agentrecipes.algorithms.protocol import Loss, Needs, Outputs
from agentrecipes.components import Component, component
from agentrecipes.numerics import preferences

if TYPE_CHECKING:
    from torch import Tensor

    from agentrecipes.records import Batch


@component("algorithm")
class DPO(Component):
    """−log σ(β·(Δ of the best attempt − Δ of the worst)), Δ = Σ log π/π_ref; mean over pairs.

    Rafailov et al. 2023, eq. 7, https://arxiv.org/abs/2305.18290. A group whose returns differ
    gives one pair, of trajectories with all their turns; the sums are over action tokens.
    """

    beta: Annotated[float, Field(gt=0.0, description="How far from the reference is dear.")] = 0.1

    rules: ClassVar = fields.group_size_rule
    value_targets: ClassVar = credit.no_value_targets

    @property
    def needs(self) -> Needs:
        """Groups, each in one micro-batch, and a reference; what is in no pair is not computed."""
        return Needs(groups=True, whole_groups=True, reference=True, every_row=False)

    def advantages(self, batch: Batch) -> Tensor:
        """(B, T) ± trajectories by pairs: plus on each group's best, minus on its worst, else 0."""
        sides = preferences.extremes(batch.returns, batch.group)  # (N,)
        pairs = (sides > 0).to(sides.dtype).sum().clamp(min=1.0)
        return credit.spread(sides * (batch.sequences / pairs), batch)

    def loss(self, outputs: Outputs, batch: Batch) -> Loss:
        """The logistic loss of each pair's margin, and the share of pairs in the right order."""
        group = batch.group[batch.trajectory]  # (B,)
        margin, weight = preferences.margins(
            outputs.logp - batch.logp_ref, batch.advantage, mask=batch.action_mask, group=group
        )
        weight = weight / (batch.sequences or 1.0)  # (G,), 1 over the number of pairs
        total = (weight * preferences.logistic(self.beta * margin)).sum()
        right = (weight * (margin > 0)).sum().detach()
        return Loss(total, {"preference": total.detach(), "right_order": right})

    def observe(self, state: Mapping[str, Any], metrics: Mapping[str, float]) -> Mapping[str, Any]:
        """The state as it is."""
        return state
