"""The critic: one number from a hidden state, the policy's or that of a network of its own."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch import nn

if TYPE_CHECKING:
    from torch import Tensor


def value_head(config: Any) -> nn.Linear:
    """Linear (D, 1) in float32, all zeros: its first batch sets where it begins, see critic.py."""
    head = nn.Linear(config.get_text_config().hidden_size, 1)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    return head


class OwnTrunk(nn.Module):
    """A value head on a network of its own, which begins as a copy of the policy's."""

    def __init__(self, policy: nn.Module, head: nn.Linear) -> None:
        super().__init__()
        self.trunk = copy.deepcopy(policy)
        self.head = head
        trunk: Any = self.trunk
        ends, begins = trunk.get_output_embeddings(), trunk.get_input_embeddings()
        if ends is not None and ends.weight is not begins.weight:
            ends.requires_grad_(False)  # values are read below it
        self._trained = [own for own in self.parameters() if own.requires_grad]

    def let_train(self, wanted: bool) -> None:
        """Whether a stage trains it; what an adapter of the copy stands beside stays frozen."""
        for own in self._trained:
            own.requires_grad_(wanted)


def linear(critic: nn.Module) -> nn.Linear:
    """The layer that gives the number."""
    found: Any = critic.head if isinstance(critic, OwnTrunk) else critic
    assert isinstance(found, nn.Linear)
    return found


def let_train(critic: nn.Module, wanted: bool) -> None:
    """Whether a stage trains the critic."""
    if isinstance(critic, OwnTrunk):
        critic.let_train(wanted)
    else:
        critic.requires_grad_(wanted)


def fitted(critic: nn.Module | None, policy: Any, *, own: bool) -> nn.Module:
    """The critic that a stage needs: what there is of it stays, and what is missing is new."""
    head = value_head(policy.config) if critic is None else linear(critic)
    if not own:
        return head
    return critic if isinstance(critic, OwnTrunk) else OwnTrunk(policy, head)


def restored(state: Mapping[str, Tensor], policy: Any) -> nn.Module:
    """The critic whose ``state_dict`` this is."""
    own = any(name.startswith("trunk.") for name in state)
    critic = fitted(None, policy, own=own)
    critic.load_state_dict(state)
    return critic
