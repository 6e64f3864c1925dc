"""``python -m tests.mutants [WORD …] [--jobs N]``: every listed fault must be found.

Applies each to a copy of the tree in a temporary folder, runs the tests of its file with -x, and
prints who died of what. With words, only the mutants whose file or reason holds one of them. Exits
with 1 if a mutant lives, or if the tests fail without any.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.mutants.listed import MUTANTS, Mutant, finders
from tests.mutants.trial import HEALTHY_SECONDS, Trial, copied, keyword, mutated, tried

ROOT = Path(__file__).parents[2]
PATIENCE = 3.0  # times as long as all tests take without a mutant, for those of one mutant
STARTING = 20.0  # seconds


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant."""

    mutant: Mutant
    trial: Trial
    seconds: float

    @property
    def line(self) -> str:
        place, reason = self.mutant.file, self.mutant.reason
        word = self.trial.verdict
        return f"{word:8}{self.seconds:6.1f} s  {place:36}{reason:58} {self.trial.found_by}"


def examine(mutant: Mutant, seconds: float) -> Verdict:
    """Try one mutant in a copy of its own, whose tests may take so long."""
    began = time.perf_counter()
    with TemporaryDirectory(prefix="mutant-") as folder:
        tree = copied(ROOT, Path(folder))
        mutated(tree, mutant)
        trial = tried(tree, finders(mutant), keyword(mutant), seconds=seconds)
    return Verdict(mutant, trial, time.perf_counter() - began)


def healthy(mutants: list[Mutant]) -> float | None:
    """How long the tests that are to find the mutants take without any; None where one fails."""
    began = time.perf_counter()
    with TemporaryDirectory(prefix="mutant-") as folder:
        tree = copied(ROOT, Path(folder))
        tests = tuple(dict.fromkeys(test for mutant in mutants for test in finders(mutant)))
        trial = tried(tree, tests, "", seconds=HEALTHY_SECONDS)
    if trial.verdict != "alive":
        print(f"The tests fail without any mutant: {trial.found_by}", file=sys.stderr)
        return None
    return time.perf_counter() - began


def main(arguments: list[str]) -> int:
    """Print a line a mutant and a count; 1 if one lives."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args(arguments)
    chosen = [
        mutant
        for mutant in MUTANTS
        if not given.words or any(w in f"{mutant.file} {mutant.reason}" for w in given.words)
    ]
    if not chosen:
        print("No mutant has any of these words.", file=sys.stderr)
        return 2
    if (seconds := healthy(chosen)) is None:
        return 1
    verdicts = []
    with ThreadPoolExecutor(given.jobs) as pool:  # each trial is a process; the threads only wait
        most = PATIENCE * (seconds + STARTING)
        for verdict in pool.map(lambda mutant: examine(mutant, most), chosen):
            print(verdict.line, flush=True)
            verdicts.append(verdict)
    left = [verdict for verdict in verdicts if verdict.trial.verdict != "killed"]
    print(f"{len(verdicts) - len(left)} of {len(verdicts)} mutants killed.")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
