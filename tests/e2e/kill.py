"""Kills runs at random, resumes them, and holds what they leave to a run that nothing disturbed.

    python tests/e2e/kill.py --kills 20 --processes 1 --seed 0

Half of the kills come before a random file is touched, half after a random time. What is printed
names each of them, so that one can be done again: the same seed kills at the same files. With two
processes all come after a time, and hit the whole run or one of its ranks in turn.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import commands as processes
from commands import Command, Commands
from compare_runs import first_difference

HERE = Path(__file__).parent
RECIPE = HERE / "killed.yaml"
PARTS = ("--parts", HERE / "parts")
KILLED = (-signal.SIGKILL, -signal.SIGPROF)  # how a killed process ends
TWO = ["trainer.strategy=ddp", "trainer.devices=2", "trainer.accelerator=cpu"]


def start(commands: Commands, name: str, *words: str, kill: dict[str, Any]) -> Command:
    """The run in ``runs/<name>``, to be killed at a point."""
    folder = commands.folder / "runs" / name
    inside = {} if "wall" in kill else kill
    command = commands.start(
        *("run", RECIPE, *words, "--run-dir", folder, *PARTS, "--json"),
        kill={**inside, "folder": str(folder)},
    )
    if "wall" in kill and not command.over.wait(kill["wall"]):
        strike(command, kill.get("rank"))
    return command.wait()


def strike(command: Command, rank: int | None) -> None:
    """Kill a run, or one of the ranks that it has started."""
    children = Path(f"/proc/{command.pid}/task/{command.pid}/children").read_text().split()
    victim = command.pid if rank is None or rank >= len(children) else int(children[rank])
    os.kill(victim, signal.SIGKILL)


def resume(commands: Commands, name: str) -> Command:
    """Go on with it."""
    return commands.run("run", "--resume", commands.folder / "runs" / name, *PARTS, "--json")


def killed(commands: Commands, name: str, *words: str, kill: dict[str, Any]) -> Command:
    """A run that was killed and resumed to its end; started again if it was not yet a run."""
    first = start(commands, name, *words, kill=kill)
    while first.code == 0 and not {"seconds", "wall"}.isdisjoint(kill):
        kill = sooner(kill)  # it was over before its time came
        shutil.rmtree(commands.folder / "runs" / name)
        first = start(commands, name, *words, kill=kill)
    ended = (*KILLED, 1) if "rank" in kill else KILLED  # a rank that is lost fails the run
    assert first.code in ended, f"not killed, but {first.code}: {first.err}"
    if not (commands.folder / "runs" / name / "recipe.yaml").exists():
        return start(commands, name, *words, kill={})
    return resume(commands, name)


def sooner(kill: dict[str, Any]) -> dict[str, Any]:
    """The same point at two thirds of its time."""
    return {
        key: value * 2 / 3 if key in ("seconds", "wall") else value for key, value in kill.items()
    }


def points(kills: int, offered: dict[str, float], seed: int) -> list[dict[str, Any]]:
    """Random kill points in a run that offers so many."""
    draw = random.Random(seed)
    if "wall" in offered:
        times = [round(draw.uniform(0.05, 0.8 * offered["wall"]), 2) for _ in range(kills)]
        ranks: list[dict[str, Any]] = [{}, {"rank": 0}, {}, {"rank": 1}]
        return [{"wall": wall, **ranks[n % len(ranks)]} for n, wall in enumerate(times)]
    return [
        {"file": draw.randint(1, int(offered["file"]))}
        if number % 2 == 0
        else {"seconds": round(draw.uniform(0.05, 0.8 * offered["seconds"]), 2)}
        for number in range(kills)
    ]


def main() -> int:
    """Kill, resume, compare; 1 where a resumed run differs from the whole one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--processes", type=int, default=1, choices=(1, 2))
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args()
    words = TWO if wanted.processes == 2 else []
    folder = Path(tempfile.mkdtemp(prefix="kill-test-"))
    processes.PATIENCE_SECONDS = 600.0  # this takes its time, and may share the machine
    commands = Commands(folder)
    bad = 0
    try:
        tell = folder / "offered.json"
        began = time.monotonic()
        whole = start(commands, "whole", *words, kill={"tell": str(tell)})
        if whole.code != 0:
            print(f"no run to compare with:\n{whole.err}")
            return 1
        offered = json.loads(tell.read_text())
        if words:
            offered = {"wall": time.monotonic() - began}
        print(f"{wanted.kills} kills, seed {wanted.seed}, {wanted.processes} process(es); ", end="")
        print("a whole run: " + ", ".join(f"{name} {n:.6g}" for name, n in offered.items()))
        for number, point in enumerate(points(wanted.kills, offered, wanted.seed)):
            began = time.monotonic()
            name = f"kill-{number}"
            done = killed(commands, name, *words, kill=point)
            found = f"exit {done.code}: {done.err[-500:]}" if done.code else None
            found = found or first_difference(folder / "runs" / "whole", folder / "runs" / name)
            bad += found is not None
            seconds = time.monotonic() - began
            print(f"{number:3} {point!s:28} {seconds:5.1f} s  {found or 'equal'}", flush=True)
    finally:
        commands.close()
        if not bad:
            shutil.rmtree(folder)
    print(f"{wanted.kills - bad} of {wanted.kills} equal" + (f"; see {folder}" if bad else ""))
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
