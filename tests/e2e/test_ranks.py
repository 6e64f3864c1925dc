"""A run in two processes, by the real command: one of them dies, and the run is resumed."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from test_resume import rows

from tolerances import LOSS_BY_STRATEGY

TWO = ["trainer.devices=2", "trainer.accelerator=cpu", "trainer.tokens_per_batch=300"]


PARTS = Path(__file__).parent / "parts"
PATIENCE_SECONDS = 280.0  # four processes import everything, perhaps on a busy machine


def processes(run: Path) -> dict[str, int]:
    """Rank → process id, of the run in a folder."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            said = (place / "environ").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        facts = dict(each.partition("=")[::2] for each in said if "=" in each)
        if facts.get("AGENTRECIPES_RUN") == str(run.resolve()):
            found[facts["AGENTRECIPES_RANK"]] = int(place.name)
    return found


def losses(run: Path) -> list[float]:
    told = [row for row in rows(run, "metrics") if row["name"] == "loss/total"]
    return [row["value"] for row in sorted(told, key=lambda r: (r["stage"], r["step"]))]


@pytest.mark.timeout(900)
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up in /proc")
def test_a_dead_rank_ends_the_run_and_resuming_it_ends_like_one_process(commands, start):
    alone = start("alone", TWO[2])
    command = start("ranks", *TWO)
    command.patience = alone.patience = PATIENCE_SECONDS
    command.says("reinforce 0  dev greedy")
    folder = commands.folder / "runs" / "ranks"
    own = processes(folder)
    assert sorted(own) == ["0", "1"]
    os.kill(own["1"], signal.SIGKILL)
    killed = time.monotonic()
    assert command.wait().code == 1
    assert time.monotonic() - killed < 120.0  # half a minute of grace, and the last files
    assert "rank 1 was ended by SIGKILL" in command.err
    assert command.json["status"] == "failed"
    assert json.loads((folder / "summary.json").read_text())["status"] == "failed"
    assert processes(folder) == {}
    again = commands.start("run", "--resume", folder, "--parts", PARTS, "--json")
    again.patience = PATIENCE_SECONDS
    again.wait()
    assert (again.code, again.json["status"]) == (0, "finished"), again.err
    assert alone.wait().code == 0, alone.err
    one = commands.folder / "runs" / "alone"
    assert losses(folder) == pytest.approx(losses(one), rel=0, abs=LOSS_BY_STRATEGY)
    asked = ("stage", "iteration", "task", "attempt", "turn", "action_ids")
    turns = [[[row[key] for key in asked] for row in rows(run, "turns")] for run in (folder, one)]
    assert turns[0] == turns[1]
