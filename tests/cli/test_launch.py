"""The wait for a run's ranks, with processes that do nothing else."""

from __future__ import annotations

import signal
import subprocess

from agentrecipes.cli import launch


def started(*lines: str) -> list[subprocess.Popen[bytes]]:
    return [subprocess.Popen(["sh", "-c", line]) for line in lines]


def test_a_later_rank_that_dies_at_once_ends_the_ones_before_it(monkeypatch):
    # The first rank waits for the second, which will never come: nothing but its end tells.
    monkeypatch.setattr(launch, "GRACE_SECONDS", 0.1)
    codes = launch._waited(started("exec sleep 60", "exit 3", "kill -KILL $$"))
    assert codes == [-signal.SIGKILL, 3, -signal.SIGKILL]


def test_ranks_that_end_well_are_all_waited_for():
    assert launch._waited(started("sleep .2", "exit 0")) == [0, 0]
