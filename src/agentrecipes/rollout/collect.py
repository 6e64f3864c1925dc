"""Many episodes at once: who is sampled together, and in which order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from agentrecipes.engines.protocol import Joined, Request, Sample
from agentrecipes.errors import EngineError
from agentrecipes.records import Trajectory
from agentrecipes.rollout.episode import play_policy
from agentrecipes.rollout.setting import Job, Setting

__all__ = ["Job", "Setting", "collect", "run"]

T = TypeVar("T")
Waiting = tuple[int, Request, "asyncio.Future[Sample]"]  # the index of its job, and who waits


def collect(jobs: Sequence[Job], setting: Setting) -> list[Trajectory]:
    """One trajectory per job, in their order.

    With ``order: fixed`` all episodes of a wave wait for each other at every turn, and are sampled
    in the order of their jobs. With ``ready`` whoever waits is sampled: at once where the engine's
    batch can be joined (`native`), else as soon as the engine is free. A tool that takes its time
    delays its own episode alone.

    Raises:
        EngineError: the sampler failed, or gave nothing within ``setting.engine_seconds``.
        RecipeError: the chat template cannot write the protocol's observations.
    """
    setting.chat.verify(setting.environment.protocol.observation_role)
    return run(_collect(jobs, setting))


def run(work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns, also where an event loop is running already (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    box: list[T] = []
    failed: list[BaseException] = []

    def target() -> None:
        try:
            box.append(asyncio.run(work))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=target, name="collect")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return box[0]


async def _collect(jobs: Sequence[Job], setting: Setting) -> list[Trajectory]:
    done = Progress(len(jobs), setting.on_progress)
    if setting.order == "ready":
        desk = Desk(setting, wait_for_all=False)
        gate = asyncio.Semaphore(setting.concurrency)

        async def gated(index: int, job: Job) -> Trajectory:
            async with gate:
                return await _one(index, job, desk=desk, done=done)

        return await _all([gated(index, job) for index, job in enumerate(jobs)])
    trajectories: list[Trajectory] = []
    for start in range(0, len(jobs), setting.concurrency):
        wave = jobs[start : start + setting.concurrency]
        desk = Desk(setting, wait_for_all=True)
        desk.live = len(wave)
        trajectories += await _all(
            [_one(index, job, desk=desk, done=done) for index, job in enumerate(wave)]
        )
    return trajectories


async def _one(index: int, job: Job, *, desk: Desk, done: Progress) -> Trajectory:
    async def sample(request: Request) -> Sample:
        return await desk.sample(index, request)

    try:
        return await play_policy(job, desk.setting, sample)
    finally:
        desk.leave()
        done.add()


async def _all(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Every result; the first failure cancels the rest and is raised as it is."""
    tasks: list[asyncio.Task[T]] = []
    try:
        async with asyncio.TaskGroup() as group:
            tasks.extend(group.create_task(one) for one in work)
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


class Progress:
    """Counts finished episodes for whoever watches."""

    def __init__(self, total: int, report: Callable[[int, int], None] | None) -> None:
        self._total, self._report, self._done = total, report, 0

    def add(self) -> None:
        self._done += 1
        if self._report is not None:
            self._report(self._done, self._total)


class Desk:
    """Where episodes hand in their requests and wait for their turn to be sampled."""

    def __init__(self, setting: Setting, *, wait_for_all: bool) -> None:
        self.setting = setting
        self.live = 0  # episodes that may still hand in, where all are waited for
        self._wait_for_all = wait_for_all
        engine = setting.engine
        self._joined = engine if isinstance(engine, Joined) and not wait_for_all else None
        self._waiting: list[Waiting] = []
        self._work: asyncio.Task[None] | None = None

    async def sample(self, index: int, request: Request) -> Sample:
        """The sample for `request`, once it has been in a batch."""
        future: asyncio.Future[Sample] = asyncio.get_running_loop().create_future()
        self._waiting.append((index, request, future))
        self._start()
        if self._joined is None:
            return await future
        try:
            async with asyncio.timeout(self.setting.engine_seconds):
                return await future
        except TimeoutError as error:
            raise self._failure(error) from None

    def leave(self) -> None:
        """An episode is over: nobody waits for it any more."""
        self.live -= 1
        self._start()

    def _start(self) -> None:
        """Begin a batch if it is time for one."""
        complete = len(self._waiting) >= self.live if self._wait_for_all else True
        busy = self._work is not None and not self._work.done()
        if self._waiting and complete and not busy:
            self._work = asyncio.get_running_loop().create_task(self._generate())

    async def _generate(self) -> None:
        await asyncio.sleep(0)  # whoever becomes ready in the same moment joins the batch
        batch, self._waiting = sorted(self._waiting, key=lambda entry: entry[0]), []
        if self._joined is not None:
            self._hand_in(batch, self._joined)
            self._work = None
            self._start()
            return
        try:
            async with asyncio.timeout(self.setting.engine_seconds):
                samples = await self.setting.engine.generate([request for _, request, _ in batch])
        except BaseException as error:
            failure = self._failure(error)
            for _, _, future in batch:
                if not future.done():
                    future.set_exception(failure)
            return
        for (_, _, future), sample in zip(batch, samples, strict=True):
            if not future.done():
                future.set_result(sample)
        self._work = None
        self._start()

    def _hand_in(self, batch: list[Waiting], engine: Joined) -> None:
        """Let `batch` join what is sampled; each gets its sample when it is done."""
        try:
            given = engine.submit([request for _, request, _ in batch])
        except EngineError as error:
            for _, _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, _, future), sampled in zip(batch, given, strict=True):
            sampled.add_done_callback(partial(_pass_on, future))
            future.add_done_callback(partial(_give_up, sampled))

    def _failure(self, error: BaseException) -> BaseException:
        if isinstance(error, TimeoutError):
            limit = self.setting.engine_seconds
            return EngineError(f"the engine gave nothing within {limit:g} s. Look at its log.")
        if isinstance(error, asyncio.CancelledError):
            return EngineError("sampling was cancelled.")
        return error


def _pass_on(to: asyncio.Future[Sample], sampled: asyncio.Future[Sample]) -> None:
    """Give `to` what `sampled` has, unless nobody waits any more."""
    error = None if sampled.cancelled() else sampled.exception()
    if to.done():
        return
    if sampled.cancelled():
        to.set_exception(EngineError("sampling was cancelled."))
    elif error is not None:
        to.set_exception(error)
    else:
        to.set_result(sampled.result())


def _give_up(sampled: asyncio.Future[Sample], waited: asyncio.Future[Sample]) -> None:
    """Stop sampling what nobody waits for."""
    if waited.cancelled():
        sampled.cancel()
