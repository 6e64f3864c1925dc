"""A stage that collects and learns nothing pauses, tells why, and can go on."""

from __future__ import annotations

import json

from small import experiment, small
from tests.judges.server import served

from agentrecipes.experiment import run
from agentrecipes.training import checkpoints

SHORT = ("stages.imitate.steps=2", "evaluation.tasks=2", "tripwires.dead_type=null")


def wired(rule: str) -> str:
    return f"stages.reinforce.tripwires.constant_reward={rule}"


def test_a_run_whose_reward_says_nothing_pauses_with_a_checkpoint_and_can_go_on(tmp_path):
    recipe = small(*SHORT, "rewards=[constant]", wired("{iterations: 2}"))
    told = run(experiment(recipe, tmp_path / "run"))
    assert told["status"] == "stopped"
    verdict = told["tripwires"][-1]
    assert verdict["action"] == "pause"
    assert verdict["evidence"] == {"iterations": 2.0, "null_share": 0.0, "total": 1.0}
    found = checkpoints.newest(tmp_path / "run" / "checkpoints")
    assert found.state["position"]["iteration"] == 2
    again = run(experiment(recipe, tmp_path / "run"), resume=True)
    assert (again["status"], again["stages"][-1]["iterations"]) == ("finished", 3)
    assert [each["action"] for each in again["tripwires"]].count("pause") == 1


def test_a_judge_that_is_gone_is_named_and_its_failures_are_in_the_table(tmp_path):
    with served(lambda prompt: (500, "down")) as heard:
        judge = {"name": "openai", "model": "m", "base_url": heard.url, "retries": 0}
        reward = {"name": "judge", "prompt": "Is {transcript} good?", "judge": judge}
        recipe = small(
            *SHORT, f"rewards={json.dumps([reward])}", wired("{iterations: 1, action: stop}")
        )
        told = run(experiment(recipe, tmp_path / "run"))
    assert told["status"] == "stopped"
    assert "judge could not be computed for any" in told["tripwires"][-1]["message"]
    assert told["tripwires"][-1]["evidence"]["null_share"] == 1.0
    [file] = (tmp_path / "run" / "tables" / "judgements").glob("*.parquet")
    import pyarrow.parquet as pq

    rows = pq.read_table(file).to_pylist()
    assert len(rows) == 16  # four attempts at four tasks
    assert {row["problem"] for row in rows} == {"the judge's server says 500: down"}


def test_a_warning_is_told_once_and_the_run_goes_on(tmp_path):
    rule = wired("{iterations: 1, action: warn}")
    told = run(experiment(small(*SHORT, "rewards=[constant]", rule), tmp_path / "run"))
    assert told["status"] == "finished"
    warnings = [each for each in told["tripwires"] if "constant_reward" in each["message"]]
    assert len(warnings) == 3  # once for each window, of one iteration here
