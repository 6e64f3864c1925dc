"""Sampling alone, the `native` engine beside vLLM on a CPU: tokens per CPU second.

    python bench/native_vs_vllm.py            # the shape of SmolLM2-135M with random weights
    python bench/native_vs_vllm.py --model models_local/HuggingFaceTB/SmolLM2-135M-Instruct
    python bench/native_vs_vllm.py --python ~/with-vllm/bin/python --json
    python bench/native_vs_vllm.py --write docs/performance.md
    python bench/native_vs_vllm.py --precision fp32    # bf16 takes hours on a CPU without its units

Prompts of 40 token ids, no two alike, 32 new tokens each, temperature 1, one thread; nothing ends a
turn before that. Each engine is measured in a process of its own, which takes every batch size
`--repeats` times after a first call and reports the median. CPU seconds, so that other work on the
machine matters less. vLLM is asked through its own API. Without it the benchmark says so and ends.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from measuring import command, machine, put

NAME = "native_vs_vllm"
PROMPT, NEW = 40, 32
BATCHES = (16, 64)
DTYPES = {"fp32": "float32", "bf16": "bfloat16"}
QUIET = {
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "PYTHONPATH": str(Path(__file__).resolve().parents[1] / "src"),
}


def prompts(count: int, words: int) -> list[list[int]]:
    """Random ids, the same for both engines."""
    draw = random.Random(count)
    return [[draw.randrange(3, words) for _ in range(PROMPT)] for _ in range(count)]


def native(folder: str, dtype: str) -> Callable[[int], int]:
    """A call of the native engine on so many prompts, which gives the number of new tokens."""
    import asyncio

    import torch
    from beside_trl import tokenizer
    from transformers import AutoModelForCausalLM

    from agentrecipes.components import build
    from agentrecipes.engines.protocol import Request

    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, DTYPES[dtype]))
    model.generation_config.eos_token_id = None
    engine = build("engine", "native").start(model, tokenizer("135m", ends=False))
    version = 0

    def call(count: int) -> int:
        nonlocal version
        version += 1
        engine.load(model.state_dict().items(), version)
        asked = prompts(count, model.config.vocab_size)
        requests = [
            Request(tuple(ids), key=("bench", version, row), max_tokens=NEW)
            for row, ids in enumerate(asked)
        ]
        return sum(len(sample.ids) for sample in asyncio.run(engine.generate(requests)))

    return call


def vllm(folder: str, dtype: str) -> Callable[[int], int]:
    """A call of vLLM, in this process, on so many prompts."""
    from vllm import LLM, SamplingParams

    engine = LLM(
        folder,
        dtype=DTYPES[dtype],
        enforce_eager=True,
        skip_tokenizer_init=True,
        max_model_len=512,
        max_num_seqs=max(BATCHES),
        kv_cache_memory_bytes=2**30,
        enable_prefix_caching=False,
        seed=0,
    )
    words = engine.llm_engine.model_config.get_vocab_size()
    how = SamplingParams(
        temperature=1.0, max_tokens=NEW, ignore_eos=True, detokenize=False, logprobs=0
    )

    def call(count: int) -> int:
        asked = [{"prompt_token_ids": ids} for ids in prompts(count, words)]
        answers = engine.generate(asked, how, use_tqdm=False)
        return sum(len(answer.outputs[0].token_ids) for answer in answers)

    return call


def child(side: str, folder: str, dtype: str, repeats: int) -> None:
    """Measure one engine in this process and print its figures as the last line."""
    call = {"native": native, "vllm": vllm}[side](folder, dtype)
    found = {}
    for count in BATCHES:
        call(count)
        taken = []
        for _ in range(repeats):
            began = time.process_time()
            tokens = call(count)
            taken.append(time.process_time() - began)
            if tokens != count * NEW:
                raise RuntimeError(f"{side}: {tokens} tokens instead of {count * NEW}")
        found[count] = count * NEW / statistics.median(taken)
    print(json.dumps(found), flush=True)


def measured(side: str, python: str, words: argparse.Namespace, dtype: str) -> dict[str, float]:
    """Tokens per CPU second by batch size, of an engine in a process of its own."""
    here = [str(Path(__file__).resolve()), "--side", side, "--model", words.model]
    more = ["--dtype", dtype, "--repeats", str(words.repeats)]
    done = subprocess.run(
        [python, *here, *more], env={**os.environ, **QUIET}, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{side}, {dtype}:\n{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def has_vllm(python: str) -> bool:
    """Whether `python` finds vLLM."""
    look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('vllm') is None)"
    return subprocess.run([python, "-c", look]).returncode == 0


def random_model(folder: str) -> str:
    """A folder with randomly initialised weights of SmolLM2-135M's shape."""
    from beside_trl import network

    network("135m").save_pretrained(folder)
    return folder


def rows(words: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each precision and batch size."""
    found = []
    for dtype in words.precision:
        own = measured("native", sys.executable, words, dtype)
        theirs = measured("vllm", words.python, words, dtype)
        for count in map(str, BATCHES):
            ratio = own[count] / theirs[count]
            figures = {"native": own[count], "vllm": theirs[count], "ratio": ratio}
            found.append({"dtype": dtype, "batch": int(count), **figures})
    return found


def write(page: Path, found: Sequence[dict[str, Any]]) -> None:
    """Put the rows between their marks on the page, and into the JSON beside it."""
    heads = ["precision", "prompts", "native, tokens a CPU second", "vLLM", "ratio"]
    cells = ["{dtype}", "{batch}", "{native:.0f}", "{vllm:.0f}", "{ratio:.2f}"]
    lines = [heads, ["---"] * len(heads), *([c.format(**row) for c in cells] for row in found)]
    put(page, NAME, "".join(f"| {' | '.join(line)} |\n" for line in lines))
    told = {"command": command(NAME), "machine": machine(), "rows": list(found)}
    kept = page.parent / "results" / f"{NAME}.json"
    kept.write_text(json.dumps(told, indent=1) + "\n")


def main() -> None:
    """Measure, print a table or JSON; `--side` is for the processes that it starts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="", help="a folder with a model of 135 M parameters")
    parser.add_argument("--python", default=sys.executable, help="a Python that has vLLM")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--precision", nargs="+", choices=tuple(DTYPES), default=tuple(DTYPES))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", type=Path, help="put the table into this page, JSON beside")
    parser.add_argument("--side", choices=("native", "vllm"), help=argparse.SUPPRESS)
    parser.add_argument("--dtype", choices=tuple(DTYPES), default="fp32", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.side:
        child(words.side, words.model, words.dtype, words.repeats)
        return
    if not has_vllm(words.python):
        print(f"skipped: {words.python} has no vLLM. `make install-engines`, or --python.")
        return
    with tempfile.TemporaryDirectory() as folder:
        words.model = words.model or random_model(folder)
        found = rows(words)
    if words.write:
        write(words.write, found)
    if words.json:
        print(json.dumps({"rows": found}))
        return
    for row in found:
        line = "{dtype} batch {batch}: native {native:.0f}, vLLM {vllm:.0f} tokens per CPU second"
        print(line.format(**row) + f"  x{row['ratio']:.2f}")


if __name__ == "__main__":
    main()
