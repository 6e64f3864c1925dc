"""The critic: one number from the policy's hidden state."""

from __future__ import annotations

from typing import Any

from torch import nn


def value_head(config: Any) -> nn.Linear:
    """Linear (D, 1) in float32, all zeros: its first batch sets where it begins, see critic.py."""
    head = nn.Linear(config.get_text_config().hidden_size, 1)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    return head
