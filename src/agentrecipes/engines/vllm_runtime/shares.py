"""Several processes of one run and their servers: who starts which, and who asks which."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def started(entries: Sequence[T], start: Callable[[Mapping[int, T]], list[str]]) -> list[str]:
    """The servers that this process asks, after each process has started its share of `entries`.

    `start` takes entries by their number and gives addresses. The processes of one machine deal the
    entries among them; where there are fewer entries than processes, several ask the same server.
    """
    hosts = _gathered(socket.gethostname())
    mates = [rank for rank, host in enumerate(hosts) if host == hosts[_rank()]]
    own, count = mates.index(_rank()), len(mates)
    mine = start({number: entries[number] for number in range(own, len(entries), count)})
    here = [urls for rank, urls in enumerate(_gathered(mine)) if rank in mates]
    return mine or dealt([url for urls in here for url in urls], own, count)


def asked(urls: Sequence[str]) -> list[str]:
    """This process's share of servers that are there already."""
    return dealt(urls, _rank(), len(_gathered(None)))


def dealt(urls: Sequence[str], own: int, count: int) -> list[str]:
    """Process `own` of `count` gets every so-manyth; at least one, which others then ask too.

    Example: of a, b, c process 1 of 2 gets b; of a, b process 3 of 4 gets b.
    """
    return list(urls[own::count]) or [urls[own % len(urls)]]


def _rank() -> int:
    group = _group()
    return 0 if group is None else int(group.get_rank())


def _gathered(value: T) -> list[T]:
    """Every process's value, in their order."""
    group = _group()
    if group is None:
        return [value]
    values: list[Any] = [None] * group.get_world_size()
    group.all_gather_object(values, value)
    return values


def _group() -> Any:
    import torch.distributed as group

    return group if group.is_available() and group.is_initialized() else None
