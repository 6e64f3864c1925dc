"""64 episodes at once beside one alone, with a tool that sleeps: how much longer do they take?

    .venv/bin/python bench/episodes.py
    .venv/bin/python bench/episodes.py --episodes 256 --seconds 0.5

Nothing is sampled: the scripted engine says the same two calls and an answer in each episode, so
what is left is the tool, and what the rollout itself costs. Prints JSON: the median of five
rounds, and the ratio, which must be below 3; exits with 1 where it is not.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from typing import Any

from agentrecipes.components import build
from agentrecipes.engines.scripted import ScriptedEngine
from agentrecipes.records import Action, Call, Stop
from agentrecipes.rollout.chat import Chat
from agentrecipes.rollout.collect import Job, Setting, collect
from agentrecipes.tools.function import tool

ROUNDS, BOUND = 5, 3.0


@tool
async def nap(seconds: float) -> str:
    """Comes back after so many seconds."""
    await asyncio.sleep(seconds)
    return "awake"


def setting(seconds: float, order: Any) -> tuple[Setting, Any]:
    """The environment with that tool, and an engine that calls it twice and answers."""
    parts = {"dataset": "arithmetic", "tools": ["nap"], "instructions": "none"}
    environment = build("environment", {"name": "tools", **parts})
    actions = [Action("wait", (Call("nap", {"seconds": seconds}),))] * 2
    actions.append(Action("done", answer="42"))
    texts = [environment.protocol.write(action) for action in actions]
    tokenizer = build("model", "tiny").tokenizer()
    engine = ScriptedEngine(tokenizer, lambda request: texts[int(request.key[-2])])
    limits = {"tokens": 4000, "tokens_per_turn": 900}
    return Setting(environment, engine, Chat(tokenizer), order=order, **limits), environment


def seconds_of(count: int, seconds: float, order: Any) -> float:
    """The wall time of `count` episodes."""
    fields, environment = setting(seconds, order)
    tasks = environment.tasks("train")[:count]
    jobs = [Job(task, task.id, key=(7, "bench", 0, "rollout")) for task in tasks]
    started = time.perf_counter()
    played = collect(jobs, fields)
    taken = time.perf_counter() - started
    assert {one.stop for one in played} == {Stop.ANSWERED}
    assert len(played) == count
    return taken


def main() -> None:
    """Both orders, several rounds of each."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--episodes", type=int, default=64)
    arguments.add_argument("--seconds", type=float, default=0.2)
    given = arguments.parse_args()
    told: dict[str, Any] = {"episodes": given.episodes, "tool_seconds": given.seconds}
    for order in ("fixed", "ready"):
        seconds_of(1, 0.0, order)  # whatever is done once
        times = {
            count: statistics.median(seconds_of(count, given.seconds, order) for _ in range(ROUNDS))
            for count in (1, given.episodes)
        }
        ratio = times[given.episodes] / times[1]
        told[order] = {"one": times[1], "all": times[given.episodes], "ratio": ratio}
    told["bound"] = BOUND
    told["ok"] = all(told[order]["ratio"] < BOUND for order in ("fixed", "ready"))
    print(json.dumps(told, indent=2))
    sys.exit(0 if told["ok"] else 1)


if __name__ == "__main__":
    main()
