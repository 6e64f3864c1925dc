"""``python -m tests.oracles FOLDER [--cases N] [--only WORD …] [--write]``: who agrees with us.

Asks verl, TRL and OpenRLHF, unpacked in FOLDER (``make oracles`` does that), about N random cases
of every algorithm that they have, prints the largest gaps, and exits with 1 if one is above its
limit. With --write the table goes to docs/results/parity.md and parity.json, and the answers about
the first cases to tests/oracles/sample.json, with which the tests compare.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests"))

from oracles.compare import LIMITS, Question, Row, compared, they_say  # noqa: E402
from oracles.inputs import draw_arrays  # noqa: E402

RESULTS = ROOT / "docs" / "results"
SAMPLE = Path(__file__).parent / "sample.json"
COMMAND = "make oracles"
KNOWN = ("verl", "openrlhf", "trl")  # trl last: it takes the longest to start
SAMPLED = (0, 1, 2, 3)  # seeds
NOTES = """\
Gaps are absolute: of the loss, and of each number of its gradient by the log-probabilities. Limits:
1e-6 in float32, 1e-7 in float64. What remains in float64 are the others' own constants: verl and
OpenRLHF divide by a count plus 1e-8, TRL's SAPO temperatures are float32.

Every algorithm, also those that nobody else has, equals a loop over tokens within 1e-9 in float64
on 200 random cases: that is a test of the suite, tests/algorithms/test_by_loop.py.

A case draws ragged rows of one to three turns with observation tokens between, ratios from about
0.4 to 2.5, groups of 2 to 4 attempts (some of equal returns), and those of these fields that the
other has too: clips, dual clip, aggregation, std, gamma, lambda, value clip, entropy, a KL term in
the reward or in the loss by k1, k2 or k3, and importance weights by token or trajectory with a cap.
Both sides are cut into micro-batches, each in its own way.

Where the others compute otherwise, and are asked about what is common:

- Advantages are computed in float64 on both sides: in float32 the std of an almost equal group is
  rounding noise. TRL's and OpenRLHF's are bound to their generation step and are given to them.
- reinforce_pp_baseline: verl whitens a group of equal returns too; ours leaves it at 0.
- gspo with importance weights by token: verl puts a token's weight on that token's gradient alone,
  ours and TRL's on the trajectory's objective. verl is asked with a trajectory's weight.
- TRL's entropy bonus is a mean over the tokens of a micro-batch: asked with token means, uncut.
- OpenRLHF's KL terms are float32 whatever comes in: not asked.
"""


def rounded(x: Any) -> list[float]:
    return [float(f"{value:.13g}") for value in np.asarray(x, dtype=np.float64).ravel()]


def sample(oracle: Any) -> list[dict[str, Any]]:
    """An oracle's float64 answers about its first cases; numbers on action tokens, row by row."""
    cases = []
    for name in oracle.names:
        for seed in SAMPLED:
            question = Question.draw(oracle, name, seed)
            mask = draw_arrays(seed)["action_mask"]
            loss, gradient = they_say(oracle, question, "float64")
            case = {"source": oracle.source, "seed": seed, "spec": question.spec}
            case |= {key: rounded(x[mask]) for key, x in question.more.items()}
            case |= {"micro_batches": question.ours, "loss": float(f"{loss:.13g}")}
            cases.append({**case, "gradient": rounded(gradient[mask])})
    return cases


def versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


def table(rows: list[Row]) -> str:
    """The gaps as a Markdown table."""
    lines = ["| algorithm | beside | cases | loss, float32 | gradient | loss, float64 | gradient |"]
    lines += ["| --- | --- | ---: | ---: | ---: | ---: | ---: |"]
    for row in sorted(rows, key=lambda row: (row.algorithm, row.source)):
        gaps = [each[kind] for kind in LIMITS for each in (row.loss, row.gradient)]
        numbers = " | ".join(f"{gap:.1e}" for gap in gaps)
        lines.append(f"| {row.algorithm} | {row.source.split(',')[0]} | {row.cases} | {numbers} |")
    return "\n".join(lines)


def write(rows: list[Row], cases: list[dict[str, Any]]) -> None:
    """The results for readers, and the sample for the tests."""
    made = {"command": COMMAND, "versions": versions(), "sources": sorted({r.source for r in rows})}
    text = json.dumps({**made, "limits": LIMITS, "rows": [asdict(r) for r in rows]}, indent=1)
    (RESULTS / "parity.json").write_text(text + "\n", encoding="utf-8")
    words = ", ".join([*made["sources"], *(f"{k} {v}" for k, v in made["versions"].items())])
    page = f"# Losses and gradients beside other implementations\n\n{table(rows)}\n\n{NOTES}\n"
    page += f"Made by `{COMMAND}`, with {words}.\n"
    (RESULTS / "parity.md").write_text(page, encoding="utf-8")
    arrays = {
        str(seed): {name: x.tolist() for name, x in draw_arrays(seed).items()} for seed in SAMPLED
    }
    lines = [json.dumps({"about": made, "inputs": arrays})[:-1] + ', "cases": [']
    lines += [",\n".join(json.dumps(case) for case in cases), "]}"]
    SAMPLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Print a line an algorithm and oracle; 1 if a gap is above its limit."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracles", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--only", nargs="*", default=(), help="oracles or algorithms")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args(arguments)
    if given.write and given.only:
        parser.error("--write takes all of them: leave out --only")
    torch.set_num_threads(1)
    rows, cases = [], []
    sources = set(given.only) & set(KNOWN) or set(KNOWN)
    algorithms = set(given.only) - set(KNOWN)
    for word in (word for word in KNOWN if word in sources):
        oracle = import_module(f"oracles.{word}_says").Oracle(given.folder)
        cases += sample(oracle) if given.write else []
        for name in (name for name in oracle.names if not algorithms or name in algorithms):
            began = time.perf_counter()
            rows.append(compared(oracle, name, given.cases))
            print(table(rows[-1:]).splitlines()[-1], f"{time.perf_counter() - began:.0f} s")
    if given.write:
        write(rows, cases)
    far = [row for row in rows if not row.within]
    for row in far:
        print(f"Above the limit: {row.algorithm} beside {row.source}: {row.worst}", file=sys.stderr)
    print(f"{sum(row.cases for row in rows)} cases, {len(far)} of {len(rows)} rows above a limit.")
    return 1 if far else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
