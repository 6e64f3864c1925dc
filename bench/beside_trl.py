"""What the comparisons with TRL share: an environment, models, recorded attempts, honest timing."""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".bench" / "trl"
TRL = "1.16.0"
QUIET = 1.5  # load average before the start, above which nothing is reported


def inside(script: str) -> None:
    """Go on in an environment that has TRL as well; made on the first call, which takes minutes."""
    python = HOME / "bin" / "python"
    if Path(sys.prefix) == HOME:
        return
    if not (HOME / ".installed").exists():
        subprocess.run([sys.executable, "-m", "venv", HOME], check=True)
        for words in (["torch==2.13.0"], ["-e", ".", "-c", "constraints.txt", f"trl=={TRL}"]):
            subprocess.run([python, "-m", "pip", "install", "-q", *words], cwd=ROOT, check=True)
        (HOME / ".installed").touch()
    os.execv(python, [str(python), script, *sys.argv[1:]])


@dataclass(frozen=True)
class Shape:
    """`prompts` prompts of `prompt` tokens with `group` completions of at most `completion`."""

    model: str
    prompt: int
    completion: int
    group: int
    prompts: int


SIZES: dict[str, dict[str, Any]] = {
    "2m": {"hidden_size": 192, "num_hidden_layers": 4, "num_attention_heads": 6, "vocab_size": 512},
    "15m": {
        "hidden_size": 384,
        "num_hidden_layers": 6,
        "num_attention_heads": 6,
        "vocab_size": 4096,
    },
    "135m": {  # SmolLM2's shape
        "hidden_size": 576,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "intermediate_size": 1536,
        "vocab_size": 49152,
        "tie_word_embeddings": True,
    },
}


def network(size: str) -> Any:
    """A randomly initialised Llama in float32, the same for the same size."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    fields = dict(SIZES[size])
    fields.setdefault("intermediate_size", 8 * fields["hidden_size"] // 3)
    torch.manual_seed(0)
    ends = {"bos_token_id": None, "eos_token_id": 1, "pad_token_id": 0}
    return LlamaForCausalLM(LlamaConfig(max_position_embeddings=4096, **fields, **ends))


@dataclass(frozen=True)
class Attempts:
    """Recorded completions: lengths are lognormal, half of the most in the median."""

    prompts: list[list[int]]  # by attempt
    completions: list[list[int]]
    advantages: list[float]


def attempts(shape: Shape) -> Attempts:
    """Those of a shape; the first of each group has the full length."""
    draw = random.Random(f"{shape.prompt}-{shape.completion}-{shape.group}-{shape.prompts}")
    words = SIZES[shape.model]["vocab_size"]

    def some(count: int) -> list[int]:
        return [draw.randrange(2, words) for _ in range(count)]

    prompts, completions, advantages = [], [], []
    for _ in range(shape.prompts):
        prompt = some(shape.prompt)
        rewards = [float(n % 2) for n in range(shape.group)]
        mean = sum(rewards) / shape.group
        spread = statistics.stdev(rewards) if shape.group > 1 else 1.0
        for place, reward in enumerate(rewards):
            drawn = round(draw.lognormvariate(0.0, 0.5) * shape.completion / 2)
            length = shape.completion if place == 0 else max(4, min(drawn, shape.completion))
            prompts.append(prompt)
            completions.append(some(length))
            advantages.append((reward - mean) / spread if shape.group > 1 else 1.0)
    return Attempts(prompts, completions, advantages)


def wait_for_quiet(*, force: bool) -> None:
    """Refuse to measure beside other work.

    Raises:
        SystemExit: the load is above QUIET.
    """
    load = os.getloadavg()[0]
    if load > QUIET and not force:
        raise SystemExit(f"The load average is {load:.1f}: measure on a quiet machine, or --force.")


def interleaved(
    sides: dict[str, Callable[[], Any]], *, repeats: int, warmup: int = 1
) -> dict[str, list[float]]:
    """Wall seconds of each side, `repeats` times, in an order that is turned round each time."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(warmup + repeats):
        names = list(sides) if number % 2 == 0 else list(sides)[::-1]
        for name in names:
            began = time.perf_counter()
            sides[name]()
            if number >= warmup:
                taken[name].append(time.perf_counter() - began)
    return taken


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """Median of theirs over median of ours, and its 95 % bootstrap interval."""
    draw = random.Random(0)

    def once(a: Sequence[float], b: Sequence[float]) -> float:
        return statistics.median(b) / statistics.median(a)

    drawn = sorted(
        once(draw.choices(ours, k=len(ours)), draw.choices(theirs, k=len(theirs)))
        for _ in range(2000)
    )
    return once(ours, theirs), drawn[50], drawn[1949]
