"""Prompts that wait at the same time, answered together in a thread of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

Answer = Callable[[Sequence[str]], list[str]]


class Batches:
    """Collects prompts from coroutines of one event loop, and answers up to `size` at a time."""

    def __init__(self, answer: Answer, size: int) -> None:
        self._answer = answer
        self._size = size
        self._waiting: list[tuple[str, asyncio.Future[str]]] = []
        self._work: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="judge")

    async def reply(self, prompt: str) -> str:
        """The reply to one prompt; whatever broke its batch is raised here."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[str] = loop.create_future()
        self._waiting.append((prompt, waiting))
        if self._work is None or self._work.done():
            self._work = loop.create_task(self._go())
        return await waiting

    async def _go(self) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0)  # whoever asks at the same moment joins the first batch
        while self._waiting:
            batch, self._waiting = self._waiting[: self._size], self._waiting[self._size :]
            wanted = [pair for pair in batch if not pair[1].done()]  # some gave up waiting
            try:
                prompts = [prompt for prompt, _ in wanted]
                replies = await loop.run_in_executor(self._thread, self._answer, prompts)
            except Exception as error:  # the model is somebody else's code
                for _, waiting in wanted:
                    if not waiting.done():
                        waiting.set_exception(error)
                continue
            for (_, waiting), reply in zip(wanted, replies, strict=True):
                if not waiting.done():
                    waiting.set_result(reply)
