"""The event loop on which judges work, in a thread of its own; rewards wait for it outside."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_running: dict[int, asyncio.AbstractEventLoop] = {}  # by process: a thread does not survive a fork


def submit(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Start `work` on the judges' loop, from any other thread."""
    return asyncio.run_coroutine_threadsafe(work, _loop())


def _loop() -> asyncio.AbstractEventLoop:
    with _lock:
        if os.getpid() not in _running:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="judges", daemon=True).start()
            _running[os.getpid()] = loop
        return _running[os.getpid()]
