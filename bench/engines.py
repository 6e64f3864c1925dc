"""vLLM beside native: the default recipe learns alike, and every update of weights is taken.

    .venv-engines/bin/python bench/engines.py learn            # 3 seeds of 3 engines
    .venv-engines/bin/python bench/engines.py learn --quick    # one seed, a few iterations
    .venv-engines/bin/python bench/engines.py gap              # 10 updates, tied and untied weights

Both need ``make install-engines``, write docs/results/engines.json, and exit with 1 where a bound
does not hold: after learning, sampled exact match on test within two standard errors of native's;
after each update, log-probabilities within 5e-4 nats of the model's and the same greedy turns as
native's.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import json
import math
import sys
import time
from collections.abc import Sequence
from typing import Any

from runs import RECIPE, RESULTS, rows, run, value

SEEDS = (7, 0, 1)
ENGINES = ("native", "vllm", "vllm_server")
QUICK = (
    "stages.reinforce.iterations=4",
    "stages.imitate.steps=200",
    "evaluation.tasks=50",
    "tripwires.no_signal.action=warn",
    "tripwires.dead_type.action=warn",
)
UPDATES, MOST_NATS, MOST_ERRORS = 10, 5e-4, 2.0


def learn(seeds: Sequence[int], more: Sequence[str]) -> dict[str, Any]:
    """Each engine's score after training, and how far it is from native's."""
    told: dict[str, Any] = {}
    for engine in ENGINES:
        made = [run([RECIPE, f"seed={seed}", f"rollout.engine={engine}", *more]) for seed in seeds]
        last = [rows(each, "test", "sampled")[-1] for each in made]
        told[engine] = {
            "command": made[0]["command"],
            "before": [value(each, "dev", "sampled", last=False) for each in made],
            "after": [row["value"] for row in last],
            "standard_errors": [row["standard_error"] for row in last],
            "wall_seconds": [each["wall_seconds"] for each in made],
            "status": [each["status"] for each in made],
        }
        print(f"{engine}: {told[engine]['after']}", file=sys.stderr, flush=True)
    native = told["native"]
    for engine in ENGINES[1:]:
        told[engine]["errors_from_native"] = distance(told[engine], native)
    told["ok"] = all(
        abs(told[engine]["errors_from_native"]) <= MOST_ERRORS for engine in ENGINES[1:]
    )
    return told


def distance(one: dict[str, Any], other: dict[str, Any]) -> float:
    """The difference of two means over seeds, in standard errors over their tasks."""
    means = [sum(each["after"]) / len(each["after"]) for each in (one, other)]
    squares = [
        sum(error**2 for error in each["standard_errors"]) / len(each["after"]) ** 2
        for each in (one, other)
    ]
    return (means[0] - means[1]) / max(math.sqrt(sum(squares)), 1e-9)


def gap() -> dict[str, Any]:
    """The largest gap in nats, and whether greedy turns are native's, by update and model."""
    told: dict[str, Any] = {"updates": UPDATES, "bound_nats": MOST_NATS}
    for name, tied in (("untied", False), ("tied", True)):
        told[name] = updates(tied)
        print(f"{name}: {told[name]}", file=sys.stderr, flush=True)
    told["ok"] = all(
        max(told[name]["gap_nats"]) < MOST_NATS and all(told[name]["greedy_as_native"])
        for name in ("untied", "tied")
    )
    return told


def updates(tied: bool) -> dict[str, Any]:
    """Load weights that differ from the ones before, sample, compare; again and again."""
    import torch

    from agentrecipes.engines.native import Native
    from agentrecipes.engines.protocol import Request
    from agentrecipes.engines.vllm import Vllm
    from agentrecipes.models.tiny import Tiny

    part = Tiny(init=0.12)
    tokenizer, model = part.tokenizer(), part.build(1)
    if tied:
        config = copy.deepcopy(model.config)
        config.tie_word_embeddings = True
        model = type(model)(config).eval()
    engine = Vllm().start(model, tokenizer)
    native = Native().start(model, tokenizer)  # it shares the model: it always has its weights
    gaps, same, seconds = [], [], []
    noise = torch.Generator().manual_seed(0)
    for version in range(UPDATES):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.05 * torch.randn(parameter.shape, generator=noise))
        began = time.perf_counter()
        engine.load(model.state_dict().items(), version)
        seconds.append(time.perf_counter() - began)
        native.load((), version)
        asked = [Request(tuple(range(300, 310 + n)), ("gap", n), 32) for n in range(32)]
        greedy = [Request(each.ids, each.key, 32, temperature=0.0) for each in asked]
        samples = asyncio.run(engine.generate(asked))
        gaps.append(max(off(model, *pair) for pair in zip(asked, samples, strict=True)))
        theirs = asyncio.run(native.generate(greedy))
        same.append(
            [s.ids for s in asyncio.run(engine.generate(greedy))] == [s.ids for s in theirs]
        )
    engine.close()
    native.close()
    return {"gap_nats": gaps, "greedy_as_native": same, "load_seconds": seconds}


def off(model: Any, request: Any, sample: Any) -> float:
    """The largest difference, in nats, to a plain forward pass of the model."""
    import torch

    ids = torch.tensor([[*request.ids, *sample.ids]])
    with torch.no_grad():
        logp = model(ids).logits[0, len(request.ids) - 1 : -1].float().log_softmax(-1)
    plain = logp.gather(1, torch.tensor(sample.ids)[:, None])[:, 0]
    return float((plain - torch.tensor(sample.logp)).abs().max())


def main() -> None:
    """Run one of the two, keep what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("learn", "gap"))
    parser.add_argument("--quick", action="store_true", help="one seed, a few iterations; not kept")
    words = parser.parse_args()
    if words.what == "gap":
        told = gap()
    else:
        told = learn(SEEDS[:1] if words.quick else SEEDS, QUICK if words.quick else ())
    print(json.dumps(told, indent=1))
    if not words.quick:
        RESULTS.mkdir(parents=True, exist_ok=True)
        path = RESULTS / "engines.json"
        kept = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**kept, words.what: told}, indent=1) + "\n")
    raise SystemExit(0 if told["ok"] else 1)


if __name__ == "__main__":
    main()
