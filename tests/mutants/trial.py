"""One mutant in a tree of its own, before the tests that are to find it."""

from __future__ import annotations

import os
import re
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from tests.mutants.listed import Mutant

HEALTHY_SECONDS = 3600.0  # within which all tests together end where nothing is wrong
HEAVY = ["lightning", "numpy", "pydantic", "pyarrow.parquet", "torch", "transformers"]
PARTS = ("src", "tests", "bench", "recipes", "docs", "sweeps", "README.md", "pyproject.toml")


@dataclass(frozen=True)
class Trial:
    """``killed`` (a test failed), ``alive`` (none did) or ``broken`` (they could not run)."""

    verdict: str
    found_by: str = ""


def copied(root: Path, folder: Path) -> Path:
    """A copy of what the tests need, in `folder`."""
    for name in PARTS:
        source = root / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", ".hypothesis")
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy(source, folder / name)
    return folder


def mutated(tree: Path, mutant: Mutant) -> None:
    """Edit the tree.

    Raises:
        ValueError: the mutant's old text does not occur exactly once in its file.
    """
    path = tree / "src" / "agentrecipes" / mutant.file
    text = path.read_text(encoding="utf-8")
    if (count := text.count(mutant.old)) != 1:
        raise ValueError(f"{mutant.file}: {mutant.old!r} occurs {count} times, not once.")
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")


def keyword(mutant: Mutant) -> str:
    """The tests that speak of an algorithm, where the mutant is in its file; else all."""
    path = Path(mutant.file)
    shared = {"composition", "credit", "turns", "fields", "sft"}  # whose tests lie elsewhere too
    return path.stem if path.parent.name == "algorithms" and path.stem not in shared else ""


def tried(tree: Path, tests: tuple[str, ...], word: str, *, seconds: float) -> Trial:
    """Run `tests` in `tree` in a process that has the heavy libraries loaded but not the tree.

    A mutant with which they take longer than `seconds` is found.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(HEAVY)
    log = tree / "log.txt"
    process = context.Process(target=_run, args=(str(tree), tests, word, str(log)))
    process.start()
    process.join(seconds)
    if process.is_alive():
        process.kill()
        process.join()
        return Trial("killed", "it does not end")
    if (process.exitcode or 0) < 0:
        return Trial("killed", f"the tests' process dies of signal {-process.exitcode}")
    found = re.findall(r"^(?:FAILED|ERROR) (\S+)", log.read_text(encoding="utf-8"), re.MULTILINE)
    names = ", ".join(found).replace("tests/", "")
    verdicts = {0: "alive", 1: "killed"}
    return Trial(verdicts.get(process.exitcode or 0, "broken"), names)


def _run(tree: str, tests: tuple[str, ...], word: str, log: str) -> None:
    """In the child: the copy's package and tests come before any other."""
    import pytest

    source = str(Path(tree) / "src")
    os.environ["PYTHONPATH"] = source  # for tests that start a process
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.chdir(tree)
    sys.path[:] = [source, tree, *(path for path in sys.path if path != str(Path.cwd()))]
    for name in [name for name in sys.modules if name.split(".")[0] == "tests"]:
        del sys.modules[name]
    options = ["-x", "-q", "--no-header", "--tb=no", "-rfE", "--durations=0"]
    options += ["-o", "addopts=--import-mode=importlib"]
    options += ["-p", "no:cacheprovider", "-p", "no:randomly", "--hypothesis-seed=0"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # what is loaded already
    chosen = ["-k", word] if word else []
    with open(log, "w", encoding="utf-8") as file, redirect_stdout(file), redirect_stderr(file):
        code = pytest.main([*options, *chosen, *tests])
    sys.exit(int(code))
