"""Where a critic begins."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from agentrecipes.algorithms.protocol import Algorithm
from agentrecipes.models.value_head import linear
from agentrecipes.records import Batch

if TYPE_CHECKING:
    from torch import nn


def centred(critic: nn.Module | None, batch: Batch, algorithm: Algorithm) -> Batch:
    """The batch; a value head that is still all zeros says the mean target from now on.

    A critic that starts at 0 calls every reward a surprise: a constant one would sharpen the policy
    until the critic has caught up, and then dull it while the critic overshoots.
    """
    if critic is None or any(bool(own.any()) for own in linear(critic).parameters()):
        return batch
    first = replace(batch, advantage=algorithm.advantages(batch))
    targets = algorithm.value_targets(first)[batch.action_mask]
    mean = float(targets.double().mean()) if targets.numel() else 0.0
    with torch.no_grad():
        linear(critic).bias.fill_(mean)
    return replace(batch, values_old=torch.where(batch.action_mask, mean, batch.values_old))
