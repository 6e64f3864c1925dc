"""What rewards cost: judges asked side by side, and the reward layer where no judge is asked.

    python bench/judges.py                  # JSON on stdout; no model, no network beyond loopback

``judges``: 256 trajectories are scored by a server on loopback that takes 0.2 s a reply, 64 at
once; told is the time beside the sum of the replies' times, the best of three. ``layer``: the
processor time of scoring an iteration of the default recipe, beside that of collecting it with an
untrained policy; the update is not counted, so that the share is an upper bound.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from agentrecipes.compile import RunPlace, compile_recipe
from agentrecipes.experiment import weights
from agentrecipes.recipe.load import load
from agentrecipes.recipe.schema import RewardEntry
from agentrecipes.records import Stop, Task
from agentrecipes.rewards.protocol import View
from agentrecipes.rollout.score import score, score_views
from agentrecipes.training.collecting import Collector
from agentrecipes.training.position import Position, Sampler

ROOT = Path(__file__).resolve().parents[1]
LATENCY, CONCURRENCY, TRAJECTORIES, TRIES = 0.2, 64, 256, 3


def judges() -> dict[str, Any]:
    """Seconds of waiting side by side, and one after the other."""
    program = [sys.executable, str(ROOT / "bench" / "judge_server.py"), str(LATENCY)]
    server = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
    judge = {"name": "openai", "model": "m", "base_url": url, "concurrency": CONCURRENCY}
    entry = RewardEntry.model_validate({"name": "judge", "judge": judge})
    took, busy = [], time.process_time()
    for attempt in range(TRIES):
        views = [_view(f"{attempt}-{number}") for number in range(TRAJECTORIES)]
        began = time.perf_counter()
        scores = score_views(views, [entry])
        took.append(time.perf_counter() - began)
        assert all(one.total == 1.0 for one in scores)
    busy = time.process_time() - busy
    server.terminate()
    server.wait()
    one_by_one = LATENCY * TRAJECTORIES
    return {
        "trajectories": TRAJECTORIES,
        "concurrency": CONCURRENCY,
        "seconds": min(took),
        "sum_of_latencies": one_by_one,
        "times_faster": one_by_one / min(took),
        "at_best": float(CONCURRENCY),
        "cpu_seconds_a_reply": busy / TRAJECTORIES / TRIES,
    }


def _view(answer: str) -> View:
    return View(
        task=Task("t", "dev", "Where?", ("Rome",)),
        actions=("said",),
        observations=("",),
        calls=((),),
        valid=(True,),
        answer=answer,
        stop=Stop.ANSWERED,
    )


def layer() -> dict[str, Any]:
    """Processor seconds of scoring, beside those of collecting."""
    with tempfile.TemporaryDirectory() as folder:
        recipe = load(ROOT / "recipes" / "rag_r1.yaml", ["tracking.backend=none"])
        made = compile_recipe(recipe, RunPlace(Path(folder), Path(folder) / "run"))
        stage = recipe.stage(len(recipe.stages) - 1)
        made.policy.prepare(stage, Path(folder) / "reference.pt")
        engine = stage.rollout.engine.start(made.policy.module.model, made.policy.tokenizer)
        engine.load(weights(made.policy.module), 0)
        sampler = Sampler(engine, made.policy.chat, recipe.seed, stage.name)
        collector = Collector(sampler, made.policy.module, _no_context)
        began = time.process_time()
        collected = collector.iteration(stage, Position())
        collecting = time.process_time() - began
        engine.close()
    trajectories = [each.trajectory for each in collected.scored]
    took = []
    for _ in range(5):
        began = time.process_time()
        score(trajectories, stage.rewards)
        took.append(time.process_time() - began)
    return {
        "trajectories": len(trajectories),
        "scoring_cpu_seconds": min(took),
        "collecting_cpu_seconds": collecting,
        "share": min(took) / collecting,
    }


def _no_context() -> Any:
    from contextlib import nullcontext

    return nullcontext()


if __name__ == "__main__":
    print(json.dumps({"judges": judges(), "layer": layer()}, indent=1))
