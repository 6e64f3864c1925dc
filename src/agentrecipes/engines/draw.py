"""One token a row from logits and a uniform number a row, by the inverse distribution function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from agentrecipes.engines.protocol import Request

BLOCK = 64  # tokens that are summed at once


@dataclass(frozen=True, slots=True)
class Ways:
    """How each of R rows is drawn; a row's way never depends on another row."""

    temperature: Tensor  # (R,) float32, > 0; 1 where greedy
    greedy: Tensor  # (R,) bool
    top_p: Tensor  # (R,) float64
    any_drawn: bool
    any_greedy: bool
    any_cut: bool  # a drawn row has top_p < 1

    @classmethod
    def of(cls, requests: Sequence[Request], device: torch.device) -> Ways:
        """How each request is drawn; temperature 0 is greedy, and is recorded at temperature 1."""
        heat = torch.tensor([request.temperature for request in requests], device=device)
        cut = torch.tensor([r.top_p for r in requests], dtype=torch.float64, device=device)
        return cls.made(heat, cut)

    @classmethod
    def made(cls, heat: Tensor, cut: Tensor) -> Ways:
        """Ways of R rows from their temperatures, 0 for greedy, and their top_p; (R,) both."""
        greedy = heat == 0
        return cls(
            torch.where(greedy, 1.0, heat),
            greedy,
            cut,
            any_drawn=not bool(greedy.all()),
            any_greedy=bool(greedy.any()),
            any_cut=bool(((cut < 1) & ~greedy).any()),
        )

    def rows(self, rows: Tensor) -> Ways:
        """The ways of some rows."""
        return Ways(
            self.temperature[rows],
            self.greedy[rows],
            self.top_p[rows],
            any_drawn=self.any_drawn,
            any_greedy=self.any_greedy,
            any_cut=self.any_cut,
        )


def draw(logits: Tensor, uniform: Tensor, ways: Ways) -> tuple[Tensor, Tensor]:
    """(R,) token ids, and their log-probabilities in nats at the row's temperature.

    `logits` (R, V); `uniform` (R,) float64 in [0, 1). The log-probability is that of the whole
    vocabulary, whatever top_p cuts away.
    """
    logp = torch.log_softmax(logits.float() / ways.temperature[:, None], dim=-1)  # (R, V)
    chosen = torch.zeros(len(logits), dtype=torch.int64, device=logits.device)
    if ways.any_drawn:
        probability = logp.exp()
        if ways.any_cut:
            probability = _cut(probability, ways.top_p)
        chosen = _invert(probability, uniform)
    if ways.any_greedy:
        chosen = torch.where(ways.greedy, logits.argmax(-1), chosen)
    return chosen, logp.gather(1, chosen[:, None])[:, 0]


def _invert(probability: Tensor, uniform: Tensor) -> Tensor:
    """(R,) the first token whose cumulated share exceeds the uniform number; never one of share 0.

    First the block of tokens is found, then the token in it: a cumulated sum is slow, a sum is not.
    Sums are float64.
    """
    rows, size = probability.shape
    blocks = torch.nn.functional.pad(probability, (0, -size % BLOCK)).view(rows, -1, BLOCK)
    block, rest = _first_above(blocks.sum(-1, dtype=torch.float64), uniform)
    inside = blocks[torch.arange(rows, device=block.device), block].double()  # (R, BLOCK)
    token, _ = _first_above(inside, rest)
    return (block * BLOCK + token).clamp(max=size - 1)  # of a row that is NaN; its logp shows it


def _first_above(weight: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """(R,) the first index whose cumulated share exceeds `uniform`, and where in it, in [0, 1]."""
    cumulated = weight.cumsum(-1)  # (R, K), not normalised
    total = cumulated[:, -1:]
    # A uniform number near 1 may round up to the total.
    below = torch.nextafter(total, torch.zeros_like(total))
    target = torch.minimum(uniform[:, None] * total, below)
    index = torch.searchsorted(cumulated, target, right=True).clamp(max=weight.shape[1] - 1)
    mass = weight.gather(1, index)
    rest = (target - (cumulated.gather(1, index) - mass)) / mass
    return index[:, 0], rest.clamp(0.0, 1.0)[:, 0]


def _cut(probability: Tensor, top_p: Tensor) -> Tensor:
    """The fewest likeliest tokens that reach top_p, 0 elsewhere (Holtzman et al. 2020)."""
    ordered, index = probability.sort(dim=-1, descending=True, stable=True)
    before = ordered.cumsum(-1, dtype=torch.float64) - ordered
    kept = torch.where(before < top_p[:, None], ordered, 0.0)
    return torch.zeros_like(probability).scatter(1, index, kept)
