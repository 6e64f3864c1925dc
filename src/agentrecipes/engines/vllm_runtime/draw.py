"""Inside vLLM: tokens are drawn as `native` draws them, from the same numbers.

vLLM's own sampler takes its random numbers from a generator with a state, so what a request draws
depends on when it ran. Here a logits processor draws, by the inverse distribution function and from
the request's own stream, and leaves vLLM one choice: the logit of the drawn token is its
log-probability, every other one is minus infinity. With ``logprobs_mode="processed_logits"`` the
"logit" that vLLM reports is then the log-probability under softmax(logits / temperature) of the
whole vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from vllm.v1.sample.logits_processor import LogitsProcessor, MoveDirectionality

from agentrecipes.engines.draw import Ways, draw
from agentrecipes.engines.vllm_runtime.worker import LIMIT, SEED, TEMPERATURE, TOP_P
from agentrecipes.numerics.streams import numbers

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a row of the batch needs to be drawn."""

    uniform: np.ndarray  # (limit,) float64
    temperature: float
    top_p: float
    sampled: list[int]  # vLLM's own list: it grows with every token


class CounterDraw(LogitsProcessor):
    """Draws every row of the batch; see the module."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self._device = device
        self._rows: dict[int, Drawn] = {}  # by place in the batch

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Refuse a request that is not one of ours.

        Raises:
            ValueError: it has no stream, or vLLM itself would draw at a temperature.
        """
        given = sampling_params.extra_args or {}
        missing = [name for name in (SEED, LIMIT, TEMPERATURE, TOP_P) if name not in given]
        if missing or sampling_params.temperature != 0:
            raise ValueError(
                f"this server draws for agentrecipes: send temperature 0 and {missing or 'no more'}"
            )

    def is_argmax_invariant(self) -> bool:
        """It decides what is drawn."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """Follow the requests that come, go and change places."""
        if batch_update is None:
            return
        for index in batch_update.removed:
            self._rows.pop(index, None)
        for index, params, _, sampled in batch_update.added:
            self._rows[index] = _drawn(params.extra_args or {}, sampled)
        for one, other, kind in batch_update.moved:
            here, there = self._rows.pop(one, None), self._rows.pop(other, None)
            if here is not None:
                self._rows[other] = here
            if kind == MoveDirectionality.SWAP and there is not None:
                self._rows[one] = there

    def apply(self, logits: Tensor) -> Tensor:
        """(R, V): the drawn token's log-probability in its place, -inf elsewhere."""
        rows = [self._rows.get(index, IDLE) for index in range(len(logits))]
        uniform = [row.uniform[min(len(row.sampled), len(row.uniform) - 1)] for row in rows]
        heat = torch.tensor([row.temperature for row in rows], device=self._device)
        cut = torch.tensor([row.top_p for row in rows], dtype=torch.float64, device=self._device)
        tokens, logp = draw(
            logits,
            torch.tensor(uniform, dtype=torch.float64, device=self._device),
            Ways.made(heat, cut),
        )
        chosen = tokens[:, None]
        return logits.fill_(float("-inf")).scatter_(1, chosen, logp[:, None].to(logits.dtype))


def _drawn(given: Mapping[str, Any], sampled: list[int]) -> Drawn:
    limit, heat = int(given.get(LIMIT, 1)), float(given.get(TEMPERATURE, 0.0))
    uniform = numbers(int(given[SEED]), limit) if heat > 0 and SEED in given else np.zeros(1)
    return Drawn(uniform, heat, float(given.get(TOP_P, 1.0)), sampled)


IDLE = Drawn(np.zeros(1), 0.0, 1.0, [])  # a row that vLLM runs to measure itself
