"""Rows of earlier calls, kept for the turns that continue them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn.functional import pad

from agentrecipes.engines.cache import Ids, Rows, Shared


class Shelf:
    """Rows of earlier calls, newest last, within a number of bytes; the newest call stays."""

    def __init__(self, limit_bytes: int, dtype: torch.dtype | None = None) -> None:
        self.limit_bytes = limit_bytes
        self.dtype = dtype  # of keys and values; None: the model's
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
        held = [(ids, call, row) for call in self._calls for row, ids in enumerate(call.ids) if ids]
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
        """New rows that begin with what was found, without gaps, with `columns` more columns.

        They share prompts where all of them come from one call in which they do.
        """
        shared = _one_tree(found)
        if shared is None:
            for hit in found:
                if hit:
                    hit[0].flatten()
        sizes = [int(hit[0].valid[hit[1], : hit[0].used].sum()) for hit in found if hit]
        longest = max(sizes, default=0)
        new = Rows(layers, len(found), longest + columns, dtype=self.dtype)
        new.shared = shared
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


def _one_tree(found: Sequence[tuple[Rows, int] | None]) -> Shared | None:
    """What the rows found share, if they all come from one call in which rows share prompts."""
    hits = [hit for hit in found if hit]
    if not hits or len(hits) < len(found):
        return None
    shared = hits[0][0].shared
    if shared is None or any(call is not hits[0][0] for call, _ in hits):
        return None
    return Shared(shared.prompts, [shared.of[row] for _, row in hits])


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
