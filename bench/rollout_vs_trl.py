"""Sampling alone, the `native` engine beside what TRL's GRPOTrainer does on a CPU.

    python bench/rollout_vs_trl.py            # all shapes; the first call installs TRL beside us
    python bench/rollout_vs_trl.py --quick    # the small shapes, in minutes
    python bench/rollout_vs_trl.py --json

Both get the same prompts as token ids, a group's prompt once for each attempt, and the same weights
in float32; temperature 1, the whole vocabulary. No token ends a completion, on either side by
having no end token, so that nobody pays for forbidding one and all completions are equally long.
Ours is charged with loading the weights (they are the model's own) and with the log-probability of
each sampled token; TRL's path on a CPU returns none. Neither is charged with tokenising or text.
`path` tells how TRL samples: by `generate`, as shipped, or by `continuous` batching, with a cache
of the size that the work needs (as shipped it takes half of the machine's memory, and is slower).
Where a path takes over three times as long as `generate`, it is measured once: `repeats` 1.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from beside_trl import Shape, grpo_trainer, inside, network, prompts, tokenizer
from measuring import arguments, clock, interleaved, row
from measuring import main as measure

Completions = list[list[int]]
PAGE = 32  # tokens of a page of TRL's continuous batching
HOPELESS = 3.0  # times as slow as `generate`, from where a path is not measured again


def ours(shape: Shape) -> Callable[[], Completions]:
    """A call of the native engine, with new random numbers and all keys forgotten each time."""
    from agentrecipes.components import build
    from agentrecipes.engines.protocol import Request

    model = network(shape.model)
    model.generation_config.eos_token_id = None
    engine = build("engine", "native").start(model, tokenizer(shape.model, ends=False))
    asked = [tuple(ids) for ids in prompts(shape)]
    version = 0

    def call() -> Completions:
        nonlocal version
        version += 1
        engine.load(model.state_dict().items(), version)
        requests = [
            Request(ids, key=("bench", version, attempt), max_tokens=shape.completion)
            for attempt, ids in enumerate(asked)
        ]
        return [list(sample.ids) for sample in asyncio.run(engine.generate(requests))]

    return call


def trls(shape: Shape, folder: str, *, continuous: bool) -> Callable[[], Completions]:
    """The trainer's own way from token ids to token ids."""
    model = network(shape.model)
    trainer = grpo_trainer(model, shape, folder, **(paged(shape) if continuous else {}))
    asked = prompts(shape)
    model.train()

    def call() -> Completions:
        found, _ = trainer._generate_single_turn(asked, None, {}, shape.group)
        return [list(ids) for ids in found]

    return call


def paged(shape: Shape) -> dict[str, Any]:
    """Settings of continuous batching whose cache holds all attempts at once, and a bit more."""
    attempts = shape.prompts * shape.group
    each = -(-(shape.prompt + shape.completion) // PAGE) + 1
    sizes = {
        "page_size": PAGE,
        "num_blocks": attempts * each,
        "max_batch_tokens": max(1024, 4 * shape.prompt),
        "max_requests_per_batch": attempts,
    }
    return {
        "use_transformers_continuous_batching": True,
        "transformers_continuous_batching_config": sizes,
    }


def checked(call: Callable[[], Completions], shape: Shape) -> Callable[[], Completions]:
    """`call`, if it gives as many tokens as were asked for.

    Raises:
        RuntimeError: it does not.
    """
    wanted = [shape.completion] * (shape.prompts * shape.group)
    lengths = [len(ids) for ids in call()]
    if lengths != wanted:
        raise RuntimeError(f"{lengths} tokens instead of {wanted}")
    return call


def sides(shape: Shape, folder: str) -> dict[str, Callable[[], Completions]]:
    """Every side that works; why continuous batching does not goes to stderr."""
    made = {"ours": checked(ours(shape), shape)}
    made["generate"] = checked(trls(shape, folder, continuous=False), shape)
    try:
        made["continuous"] = checked(trls(shape, folder, continuous=True), shape)
    except Exception as error:  # whatever stops it is a finding, not a failure of ours
        print(f"continuous batching: {type(error).__name__}: {error}", file=sys.stderr)
    return made


def measured(shape: Shape, words: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each of TRL's paths."""
    with tempfile.TemporaryDirectory() as folder:
        made = sides(shape, folder)
        once = interleaved(made, repeats=1, warmup=0, clock=clock(words))
        slow = {path for path in made if once[path][0] > HOPELESS * once["generate"][0]}
        rest = {path: call for path, call in made.items() if path not in slow}
        taken = {**once, **interleaved(rest, repeats=words.repeats, clock=clock(words))}
    tokens = shape.prompts * shape.group * shape.completion
    return [row(shape, taken, path, path=path, tokens=tokens) for path in taken if path != "ours"]


if __name__ == "__main__":
    inside(__file__)
    measure(arguments(__doc__.splitlines()[0]).parse_args(), measured, ("path", "repeats"))
