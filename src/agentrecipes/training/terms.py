"""Loss terms and extremes, added up over micro-batches and ranks."""

from __future__ import annotations

from collections.abc import Mapping


def merge(into: dict[str, float], terms: Mapping[str, float]) -> None:
    """Add shares; of what is called ``…_max`` keep the largest."""
    for name, new in terms.items():
        old = into.get(name)
        if old is None:
            into[name] = new
        else:
            into[name] = max(old, new) if name.endswith("_max") else old + new
