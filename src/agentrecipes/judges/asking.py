"""Asking a judge: what was kept first, then the judge itself; every reply is heard.

A reply that cannot be read, and a judge that fails, have no value; they never are a zero.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentrecipes.errors import TaskFailed
from agentrecipes.judges.kept import Kept, key_of, prompt_hash
from agentrecipes.judges.loop import submit
from agentrecipes.judges.occasion import Occasion, current
from agentrecipes.records import Judgement

Read = Callable[[str], float | None]
UNREADABLE = "the judge's reply could not be read"


def ask(judge: Any, prompts: Sequence[str], read: Read) -> list[Judgement]:
    """One judgement per prompt, in order, side by side; `read` makes a value of a reply or None."""
    occasion = current()
    cache = Path(judge.cache) if getattr(judge, "cache", None) else occasion.cache
    kept = Kept(cache) if cache is not None else None
    identity = judge.identity()
    keys = [key_of(identity, prompt) for prompt in prompts]
    name = f"{judge.part_name} {identity.get('model', '')}".strip()
    found: dict[str, Judgement] = {}
    for key, prompt in zip(keys, prompts, strict=True):
        known = occasion.replies.get(key) or _remembered(kept, key)
        if known is not None:
            found[key] = replace(known, part=occasion.part, judge=name, prompt=prompt_hash(prompt))
    missing = {key: text for key, text in zip(keys, prompts, strict=True) if key not in found}
    asked = _replies(judge, list(missing.values()), occasion)
    for (key, prompt), reply in zip(missing.items(), asked, strict=True):
        found[key] = replace(reply, part=occasion.part, judge=name, prompt=prompt_hash(prompt))
        if kept is not None and reply.reply is not None:
            with suppress(OSError):  # a full disk: the reply counts, and is asked for again
                kept.put(key, {"judge": identity, "prompt": prompt, "reply": reply.reply})
    judged = {key: _read(found[key], read) for key in keys}
    occasion.heard.extend(one for key, one in judged.items() if key not in occasion.replies)
    occasion.replies.update(found)
    return [judged[key] for key in keys]


def _remembered(kept: Kept | None, key: str) -> Judgement | None:
    line = kept.get(key) if kept is not None else None
    return None if line is None else Judgement("", "", str(line["reply"]), None, cached=True)


def _read(reply: Judgement, read: Read) -> Judgement:
    if reply.reply is None:
        return reply
    value = read(reply.reply)
    return replace(reply, value=value, problem=UNREADABLE if value is None else "")


def _replies(judge: Any, prompts: Sequence[str], occasion: Occasion) -> list[Judgement]:
    """A judgement without value for each prompt: the reply, or why there is none."""
    if not prompts:
        return []
    limit = min(occasion.seconds_left, float(judge.timeout_seconds))
    return submit(_all(judge, prompts, limit)).result()


async def _all(judge: Any, prompts: Sequence[str], limit: float) -> list[Judgement]:
    return list(await asyncio.gather(*(_one(judge, prompt, limit) for prompt in prompts)))


async def _one(judge: Any, prompt: str, limit: float) -> Judgement:
    began = time.perf_counter()
    try:
        [reply] = await asyncio.wait_for(judge.answer([prompt]), limit)
    except TimeoutError:
        problem = f"the judge gave no reply within {max(limit, 0.0):.3g} seconds"
        return Judgement("", "", None, None, problem, seconds=time.perf_counter() - began)
    except TaskFailed as error:
        return Judgement("", "", None, None, str(error), seconds=time.perf_counter() - began)
    return Judgement("", "", reply, None, seconds=time.perf_counter() - began)
