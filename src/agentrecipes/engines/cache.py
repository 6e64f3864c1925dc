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

Ids = tuple[int, ...]


class Layer:
    """One layer's keys and values, (rows, heads, columns, width); garbage from `used` on.

    It has the methods of transformers' CacheLayerMixin that models call.
    """

    keys: Tensor
    values: Tensor

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns
        self.live = rows  # rows of the next forward pass: the first ones
        self.used = 0  # columns that are filled
        self.is_initialized = False

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        def empty(states: Tensor) -> Tensor:
            _, heads, _, width = states.shape
            return states.new_empty((self.rows, heads, self.columns, width))

        self.keys, self.values = empty(key_states), empty(value_states)
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Append columns, (live rows, heads, columns, width); return all columns in that shape."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        end = self.used + key_states.shape[2]
        self.keys[: self.live, :, self.used : end] = key_states
        self.values[: self.live, :, self.used : end] = value_states
        self.used = end
        return self.keys[: self.live, :, :end], self.values[: self.live, :, :end]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.used + query_length, 0

    def get_seq_length(self) -> int:
        return self.used

    def get_max_length(self) -> int:
        return self.columns


class Rows:
    """The cache of one call: its layers, which columns are valid, and the ids each row holds."""

    def __init__(self, layers: int, rows: int, columns: int) -> None:
        self.layers = [Layer(rows, columns) for _ in range(layers)]
        listed: Any = self.layers
        self.cache = Cache(layers=listed)
        self.valid = torch.zeros((rows, columns), dtype=torch.bool)
        self.ids: list[Ids] = []  # written when the call is over

    @property
    def used(self) -> int:
        return self.layers[0].used

    @property
    def bytes(self) -> int:
        tensors = [tensor for layer in self.layers for tensor in (layer.keys, layer.values)]
        return sum(t.numel() * t.element_size() for t in tensors)

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

    def spread(self, source: Tensor, columns: int) -> Rows:
        """New rows, row i a copy of row ``source[i]``, with room for `columns` more columns."""
        end = self.used
        new = Rows(len(self.layers), len(source), end + columns)
        new.valid = pad(self.valid[source, :end], (0, columns))
        for layer, old in zip(new.layers, self.layers, strict=True):
            layer.lazy_initialization(old.keys, old.values)
            layer.keys[:, :, :end] = old.keys[source, :, :end]
            layer.values[:, :, :end] = old.values[source, :, :end]
            layer.used = end
        return new


class Shelf:
    """Rows of earlier calls, newest last, within a number of bytes; the newest call stays."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._calls: list[Rows] = []

    def clear(self) -> None:
        self._calls.clear()

    def keep(self, rows: Rows) -> None:
        """Put `rows` on the shelf; the oldest leave when there is no room."""
        self._calls.append(rows)
        while len(self._calls) > 1 and sum(call.bytes for call in self._calls) > self.limit_bytes:
            self._calls.pop(0)

    def match(self, prompts: Sequence[Ids]) -> list[tuple[Rows, int] | None]:
        """For each prompt the row that holds its longest beginning (never all of it), else None."""
        held = [(ids, call, row) for call in self._calls for row, ids in enumerate(call.ids)]
        if not held:
            return [None] * len(prompts)
        head = min(len(ids) for ids, _, _ in held)
        known: dict[Ids, list[tuple[Ids, Rows, int]]] = {}
        for entry in held:
            known.setdefault(entry[0][:head], []).append(entry)
        return [_longest(prompt, known.get(prompt[:head], [])) for prompt in prompts]

    def gather(
        self, found: Sequence[tuple[Rows, int] | None], layers: int, *, columns: int
    ) -> Rows:
        """New rows that begin with what was found, without gaps, with `columns` more columns."""
        longest = max((len(hit[0].ids[hit[1]]) for hit in found if hit), default=0)
        new = Rows(layers, len(found), longest + columns)
        by_call: dict[int, tuple[Rows, list[int], list[int]]] = {}
        for target, hit in enumerate(found):
            if hit:
                _, rows, targets = by_call.setdefault(id(hit[0]), (hit[0], [], []))
                rows.append(hit[1])
                targets.append(target)
        for call, rows, targets in by_call.values():
            _copy(call, rows, new=new, targets=targets, longest=longest)
        if longest:
            strangers = [target for target, hit in enumerate(found) if not hit]
            for layer in new.layers:
                layer.used = longest
                layer.keys[strangers, :, :longest] = 0.0  # masked, but it must be finite
                layer.values[strangers, :, :longest] = 0.0
        return new


def _longest(prompt: Ids, entries: list[tuple[Ids, Rows, int]]) -> tuple[Rows, int] | None:
    best, hit = 0, None
    for ids, call, row in entries:
        size = len(ids)
        if best < size < len(prompt) and prompt[:size] == ids:
            best, hit = size, (call, row)
    return hit


def _copy(call: Rows, rows: list[int], *, new: Rows, targets: list[int], longest: int) -> None:
    """Write the valid columns of `call`'s rows into the first columns of `new`'s rows `targets`."""
    device = call.valid.device
    row, target = torch.tensor(rows, device=device), torch.tensor(targets, device=device)
    new.valid = new.valid.to(device)
    valid = call.valid[row, : call.used]  # (n, used)
    place = torch.arange(longest, device=device)
    kept = place < valid.sum(1)[:, None]  # (n, longest)
    # Valid columns first, in their order; then the first one again, which is masked but finite.
    columns = torch.argsort((~valid).to(torch.uint8), dim=1, stable=True)[:, :longest]
    columns = pad(columns, (0, longest - columns.shape[1]))
    columns = torch.where(kept, columns, columns[:, :1])
    new.valid[target, :longest] = kept
    for layer, old in zip(new.layers, call.layers, strict=True):
        if not layer.is_initialized:
            layer.lazy_initialization(old.keys, old.values)
        head = torch.arange(old.keys.shape[1], device=device)
        index = (row[:, None, None], head[None, :, None], columns[:, None, :])
        layer.keys[target, :, :longest] = old.keys[index]
        layer.values[target, :, :longest] = old.values[index]
