"""What an algorithm must do: advantages once an iteration, and a loss per micro-batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from agentrecipes.records import Batch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Needs:
    """What must be computed or collected before an algorithm can run."""

    value: bool = False  # a value head
    detached_value: bool = False  # the value loss does not reach the model below the head
    own_trunk: bool = False  # values come from a copy of the policy's network, trained for them
    own: bool = False  # parameters of its own; its ``own_parameters()`` are where they begin
    reference: bool = False  # log-probabilities of the frozen reference
    entropy: bool = False  # entropy of the policy at every action token
    groups: bool = False  # at least two attempts a task
    whole_groups: bool = False  # a group's rows in one micro-batch: its loss compares them
    demonstrations: bool = False  # it reads data; otherwise it collects
    turns: bool = False  # Batch.turns, and rewards by turn where the environment gives them
    states: bool = False  # Batch.turn_state
    segments: bool = False  # Batch.segment of what was collected
    every_row: bool = True  # rows without advantage too; False: they have no loss and no gradient


@dataclass(frozen=True)  # without slots: DeepSpeed looks for tensors in its __dict__
class Outputs:
    """What the model says about a batch; (B, T) each, with gradient. ``entropy`` in nats."""

    logp: Tensor
    value: Tensor | None = None
    entropy: Tensor | None = None
    own: Mapping[str, Tensor] = field(default_factory=dict)  # the algorithm's own, scalars


@dataclass(frozen=True, slots=True)
class Loss:
    """The scalar to minimise, and what it is made of (detached scalars, for the log)."""

    total: Tensor
    terms: Mapping[str, Tensor] = field(default_factory=dict)


class Algorithm(Protocol):
    """How a batch becomes a gradient. Formulas live in numerics/; an algorithm composes them.

    What should not be is the same for all. A return that is NaN or infinite has no advantage and is
    left out of its group; a group of one attempt, or of equal returns, has advantage 0. Without
    action tokens the loss is 0. Log-ratios are cut at ±20, and a token whose sampled
    log-probability is not finite has importance weight 0. A loss that is not finite all the same is
    for the trainer, which skips the step and counts it in ``loss/skipped_steps``. Values or
    entropies that `needs` asked for and that are not there are a ValueError.
    """

    @property
    def needs(self) -> Needs: ...

    def advantages(self, batch: Batch) -> Tensor:
        """(B, T), once an iteration and on the whole batch; 0 off the action mask."""
        ...

    def value_targets(self, batch: Batch) -> Tensor:
        """(B, T) what the critic should predict, or an empty tensor where there is no critic."""
        ...

    def loss(self, outputs: Outputs, batch: Batch) -> Loss:
        """Of one micro-batch; denominators are the batch's global ones."""
        ...

    def observe(self, state: Mapping[str, Any], metrics: Mapping[str, float]) -> Mapping[str, Any]:
        """The state after an iteration (an adaptive KL coefficient lives there)."""
        ...
