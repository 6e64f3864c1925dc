"""What an update needs to know of its iteration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agentrecipes.algorithms.protocol import Algorithm


@dataclass(frozen=True, slots=True)
class Update:
    """What an update needs to know of its iteration."""

    algorithm: Algorithm
    temperature: float  # of the samples: logp is that of softmax(logits / temperature)
    accumulate: int  # micro-batches per optimizer step
    rate: Callable[
        [int], float
    ]  # share of the peak learning rate in an optimizer step of the stage
    max_gap: float | None = None  # nats between logp_old and logp_rollout before the run stops
