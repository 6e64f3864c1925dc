"""The processes of one run: which of them this is, and what they tell each other.

A run on several devices is as many processes, its ranks. They take the same decisions from the same
data, so that no rank has to be told what to do; what only one of them knows, or what is computed in
shares, passes through here. A process on its own is rank 0 of one, and every function below then
returns at once what it was given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from agentrecipes.errors import EngineError, RecipeError

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")

GONE = "another rank of this run has ended; the run cannot go on"

PATIENCE = timedelta(hours=12)  # rank 0 may evaluate alone for long; a dead rank is seen at once
LOST = ("Connection closed", "Connection reset", "Broken pipe", "Timed out", "connection failure")


def number() -> int:
    """This process's number, from 0."""
    return _group().get_rank() if _joined() else 0


def count() -> int:
    """How many processes the run has."""
    return _group().get_world_size() if _joined() else 1


def leads() -> bool:
    """Whether this is rank 0, which alone evaluates, writes and tracks."""
    return number() == 0


def join(environment: Mapping[str, str], *, gpu: bool) -> None:
    """Meet the other ranks, whose number and address the environment says.

    Raises:
        EngineError: they do not come.
    """
    import torch.distributed as dist

    try:
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if gpu else "gloo",
            init_method=f"tcp://{environment['MASTER_ADDR']}:{environment['MASTER_PORT']}",
            rank=int(environment["RANK"]),
            world_size=int(environment["WORLD_SIZE"]),
            timeout=PATIENCE,
        )
    except (RuntimeError, ValueError) as error:
        raise EngineError(f"the ranks of the run do not find each other: {error}") from error


def leave() -> None:
    """End the talk with the other ranks."""
    if _joined():
        _group().destroy_process_group()


def gathered(value: T) -> list[T]:
    """Every rank's value, in the order of the ranks."""
    if count() == 1:
        return [value]
    values: list[T | None] = [None] * count()
    with Lost():
        _group().all_gather_object(values, value)
    return values  # type: ignore[return-value]


def from_first(value: T) -> T:
    """Rank 0's value, on every rank."""
    if count() == 1:
        return value
    box = [value]
    with Lost():
        _group().broadcast_object_list(box, src=0)
    return box[0]


def any_of(flag: bool) -> bool:
    """Whether the flag is set on any rank."""
    return flag if count() == 1 else any(gathered(flag))


def summed(tensor: Tensor) -> Tensor:
    """The sum of every rank's tensor, on the CPU."""
    if count() > 1:
        with Lost():
            _group().all_reduce(tensor)
    return tensor


def agreed(what: str, value: T) -> None:
    """Hold every rank to rank 0's value.

    Raises:
        RecipeError: on every rank, if any of them has another one.
    """
    values = gathered(value)
    for other, own in enumerate(values):
        if own != values[0]:
            found = f"rank {other} has {what} {own!r}, but rank 0 has {values[0]!r}"
            hint = "Start every rank with the same files, profile and overrides."
            raise RecipeError.about("ranks_disagree", found, hint)


def share(total: int) -> int:
    """The most that a rank gets of `total` things that are dealt."""
    return -(-total // count())


def dealt(things: Sequence[T]) -> list[T]:
    """This rank's share of them: every so-manyth, like cards."""
    return list(things[number() :: count()])


class Lost:
    """Says in one line that a rank is gone, where its sockets say it in a traceback."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, RuntimeError) and any(sign in str(error) for sign in LOST):
            raise EngineError(GONE) from error


def _joined() -> bool:
    import torch.distributed as dist

    return dist.is_available() and dist.is_initialized()


def _group() -> Any:
    import torch.distributed as dist

    return dist
