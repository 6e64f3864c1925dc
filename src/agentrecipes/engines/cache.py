"""Keys and values of token rows that are still at hand, so that no token is computed twice.

A row's columns may have gaps (padding, tokens sampled after its end): what counts is which columns
are valid. Positions are inside the keys already, so a gap changes nothing but the mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers.cache_utils import Cache

from agentrecipes.engines.attention import Seats

Ids = tuple[int, ...]


class Layer:
    """One layer's keys and values, (rows, heads, columns, width); garbage from `used` on.

    It has the methods of transformers' CacheLayerMixin that models call.
    """

    keys: Tensor
    values: Tensor

    def __init__(self, rows: int, columns: int, *, dtype: torch.dtype | None = None) -> None:
        self.rows, self.columns = rows, columns
        self.dtype = dtype  # None: that of the first states
        self.live = rows  # rows of the next forward pass: the first ones
        self.used = 0  # columns that are filled
        self.is_initialized = False

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        def empty(states: Tensor) -> Tensor:
            _, heads, _, width = states.shape
            shape = (self.rows, heads, self.columns, width)
            return states.new_empty(shape, dtype=self.dtype or states.dtype)

        self.keys, self.values = empty(key_states), empty(value_states)
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Append columns, (live rows, heads, columns, width); return all columns in that shape."""
        self.append(key_states, value_states)
        keys, values = self.own
        return keys.to(key_states.dtype), values.to(value_states.dtype)

    def append(self, key_states: Tensor, value_states: Tensor) -> None:
        """Append columns, (live rows, heads, columns, width)."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        end = self.used + key_states.shape[2]
        self.keys[: self.live, :, self.used : end] = key_states
        self.values[: self.live, :, self.used : end] = value_states
        self.used = end

    @property
    def own(self) -> tuple[Tensor, Tensor]:
        """Keys and values of the live rows, (live rows, heads, columns, width)."""
        return self.keys[: self.live, :, : self.used], self.values[: self.live, :, : self.used]

    def by_head(self) -> tuple[Tensor, Tensor]:
        """Keys and values of the live rows, (live rows * heads, columns, width)."""
        rows = self.live * self.keys.shape[1]
        keys, values = self.keys.flatten(0, 1), self.values.flatten(0, 1)
        return keys[:rows, : self.used], values[:rows, : self.used]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.used + query_length, 0

    def get_seq_length(self) -> int:
        return self.used

    def get_max_length(self) -> int:
        return self.columns


class Rows:
    """The cache of one call: its layers, which columns are valid, and the ids each row holds.

    What rows of a group begin with may lie in `shared` instead of in each row's own columns.
    """

    def __init__(
        self, layers: int, rows: int, columns: int, *, dtype: torch.dtype | None = None
    ) -> None:
        self.layers = [Layer(rows, columns, dtype=dtype) for _ in range(layers)]
        listed: Any = self.layers
        self.cache = Cache(layers=listed)
        self.valid = torch.zeros((rows, columns), dtype=torch.bool)
        self.ids: list[Ids] = []  # written when the call is over
        self.shared: Shared | None = None

    @property
    def used(self) -> int:
        return self.layers[0].used

    @property
    def live(self) -> int:
        return self.layers[0].live

    @property
    def dtype(self) -> torch.dtype | None:
        return self.layers[0].dtype

    @property
    def bytes(self) -> int:
        tensors = [tensor for layer in self.layers for tensor in (layer.keys, layer.values)]
        own = sum(t.numel() * t.element_size() for t in tensors)
        return own + (self.shared.prompts.bytes if self.shared else 0)

    def narrow(self, live: int) -> None:
        """Only the first `live` rows take part from here on."""
        for layer in self.layers:
            layer.live = live

    def reserve(self, columns: int) -> None:
        """Make room for `columns` more columns, by half of what is there at least."""
        have, need = self.valid.shape[1], self.used + columns
        if need <= have:
            return
        more = max(need - have, have // 2)
        self.valid = pad(self.valid, (0, more))
        for layer in self.layers:
            layer.columns = have + more
            if layer.is_initialized:
                layer.keys = pad(layer.keys, (0, 0, 0, more))
                layer.values = pad(layer.values, (0, 0, 0, more))

    def swap(self, one: Tensor, other: Tensor) -> None:
        """Exchange the rows `one[i]` and `other[i]`."""
        there, here = torch.cat([other, one]), torch.cat([one, other])
        self.valid[here] = self.valid[there]
        end = self.used
        for layer in self.layers:
            layer.keys[here, :, :end] = layer.keys[there, :, :end]
            layer.values[here, :, :end] = layer.values[there, :, :end]
        if self.shared:
            self.shared.swap(one.tolist(), other.tolist())

    def spread(self, source: Tensor, columns: int) -> Rows:
        """New rows, row i a copy of row ``source[i]``, with room for `columns` more columns."""
        end = self.used
        new = Rows(len(self.layers), len(source), end + columns, dtype=self.dtype)
        new.valid = pad(self.valid[source, :end], (0, columns))
        for layer, old in zip(new.layers, self.layers, strict=True):
            layer.lazy_initialization(old.keys, old.values)
            layer.keys[:, :, :end] = old.keys[source, :, :end]
            layer.values[:, :, :end] = old.values[source, :, :end]
            layer.used = end
        if self.shared is not None:
            of = self.shared.of
            new.shared = Shared(self.shared.prompts, [of[row] for row in source.tolist()])
        return new

    def begun(self, source: Sequence[int], columns: int) -> Rows:
        """New rows without a column of their own; row i begins with what row ``source[i]`` is."""
        new = Rows(len(self.layers), len(source), columns, dtype=self.dtype)
        new.valid = new.valid.to(self.valid.device)
        for layer, old in zip(new.layers, self.layers, strict=True):
            layer.lazy_initialization(old.keys, old.values)
        new.shared = Shared(self, list(source))
        return new

    def join(self, new: Rows) -> None:
        """Put the rows of `new` after the live ones, in place of those that are over."""
        self.flatten()
        new.flatten()
        live, total = self.live, self.live + new.live
        was, end = self.used, max(self.used, new.used)
        first = end - new.used
        self.reserve(end - was + 1)
        more = max(0, total - len(self.valid))
        self.valid = pad(self.valid, (0, 0, 0, more))
        self.valid[live:total] = False
        self.valid[live:total, first:end] = new.valid[: new.live, : new.used]
        for layer, other in zip(self.layers, new.layers, strict=True):
            for name in ("keys", "values"):
                states = pad(getattr(layer, name), (0, 0, 0, 0, 0, 0, 0, more))
                states[:live, :, was:end] = 0.0  # masked, but it must be finite
                states[live:total, :, :first] = 0.0
                states[live:total, :, first:end] = getattr(other, name)[: new.live, :, : new.used]
                setattr(layer, name, states)
            layer.rows, layer.live, layer.used = layer.rows + more, total, end

    def flatten(self) -> None:
        """Give every row its own copy of what it shares."""
        if self.shared is None:
            return
        whole = self.shared.prompts.spread(torch.tensor(self.shared.of), self.valid.shape[1])
        first, last = whole.used, whole.used + self.used
        whole.valid[:, first:] = self.valid
        for layer, old in zip(whole.layers, self.layers, strict=True):
            layer.keys[:, :, first:last] = old.keys[:, :, : self.used]
            layer.values[:, :, first:last] = old.values[:, :, : self.used]
            layer.used, layer.live = last, old.live
        self.layers, self.cache, self.valid = whole.layers, whole.cache, whole.valid
        self.shared = None


class Shared:
    """Prompts that several rows begin with: their keys and values are there once."""

    def __init__(self, prompts: Rows, of: list[int]) -> None:
        self.prompts = prompts  # a row each
        self.of = of  # by row of those that share: the prompt that it begins with
        valid = prompts.valid[:, : prompts.used]
        self.sizes: list[int] = valid.sum(1).tolist()
        gaps = not bool(valid.all())
        nothing = torch.zeros(valid.shape)
        self.bias = nothing.masked_fill_(~valid, float("-inf")) if gaps else None
        self._seats: Seats | None = None
        self._seated = 0

    def swap(self, one: Sequence[int], other: Sequence[int]) -> None:
        """Exchange the rows ``one[i]`` and ``other[i]``."""
        for a, b in zip(one, other, strict=True):
            self.of[a], self.of[b] = self.of[b], self.of[a]
        self._seats = None

    def seats(self, live: int) -> Seats:
        """How the first `live` rows sit in their groups."""
        if self._seats is None or self._seated != live:
            self._seats = Seats.of(self.of[:live], groups=len(self.sizes))
            self._seated = live
        return self._seats

    def layers(self) -> list[Layer]:
        """The prompts' keys and values by layer."""
        return self.prompts.layers
