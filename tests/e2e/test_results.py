"""What a run leaves: tables, a model for everybody, an MLflow run, and figures that agree."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from small import RECIPE
from tests.tracking.test_mlflow import read_back

from agentrecipes.analysis.query import list_queries, query

COLUMNS = {  # DESIGN, section 10
    "metrics": "run stage iteration step name value seconds",
    "trajectories": "run stage iteration split mode task group_id attempt role stop turns "
    "policy_tokens observation_tokens total parts advantage_mean answer gold policy_version "
    "seconds",
    "turns": "run stage iteration split mode task group_id attempt role turn prompt_ids fork "
    "action_ids logp_rollout observation_ids action_text observation_text calls outcomes valid "
    "reward turn_total policy_version policy_versions engine_seconds tool_seconds advantages",
    "evaluations": "stage iteration split mode metric value tasks standard_error by rounds_mean",
}
ATTEMPT = ("stage", "iteration", "split", "mode", "group_id", "attempt")
LOGP_BOUND = 1e-4  # nats; the sampler reads one token at a time from its cache
OUTSIDER = """
import json, sys
sys.modules["agentrecipes"] = None  # whoever needs it fails
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
folder, asked = sys.argv[1], json.load(sys.stdin)
model = AutoModelForCausalLM.from_pretrained(folder)
tokenizer = AutoTokenizer.from_pretrained(folder)
gaps = []
with torch.no_grad():
    for row in asked["rows"]:
        ids = torch.tensor([row["ids"]])
        logp = model(ids).logits[0].float().log_softmax(-1)
        for place, expected in zip(row["places"], row["logp"]):
            gaps.append(abs(float(logp[place - 1, ids[0, place]]) - expected))
    texts = []
    for row in asked["prompts"]:
        ids = torch.tensor([row["ids"]])
        made = model.generate(ids, do_sample=False, max_new_tokens=row["tokens"])
        texts.append([made[0, ids.shape[1]:].tolist(), tokenizer.decode(made[0, ids.shape[1]:])])
print("TOLD" + json.dumps({"gaps": gaps, "texts": texts}))
"""


def table(folder: Path, name: str) -> list[dict[str, Any]]:
    files = sorted((folder / "tables" / name).glob("*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def trajectories(folder: Path) -> dict[tuple, list[dict[str, Any]]]:
    """Every attempt with its turns in order."""
    rows = sorted(table(folder, "turns"), key=lambda row: [*(row[k] for k in ATTEMPT), row["turn"]])
    return {place: list(turns) for place, turns in groupby(rows, key=itemgetter(*ATTEMPT))}


def whole_row(turns: list[dict[str, Any]]) -> tuple[list[int], list[int], list[float]]:
    """Ids of an attempt that never forked, the places of its actions, and their logp_rollout."""
    ids, places, logp = list(turns[0]["prompt_ids"]), [], []
    for turn in turns:
        places += range(len(ids), len(ids) + len(turn["action_ids"]))
        logp += turn["logp_rollout"]
        ids += [*turn["action_ids"], *turn["observation_ids"]]
    return ids, places, logp


@pytest.mark.parametrize("name", COLUMNS)
def test_a_table_has_the_columns_that_others_rely_on(whole, name):
    files = sorted((whole / "tables" / name).glob("*.parquet"))
    assert files
    wanted = COLUMNS[name].split()
    wanted = wanted if wanted[0] == "run" else ["run", *wanted]
    assert [pq.read_schema(file).names for file in files] == [wanted] * len(files)
    assert {row["run"] for row in table(whole, name)} == {"whole"}


def test_training_rows_say_how_many_updates_came_before(whole):
    rows = table(whole, "trajectories")
    trained = [row for row in rows if row["split"] == "train"]
    assert {(row["stage"], row["mode"]) for row in trained} == {("reinforce", "sampled")}
    counts = {number: 0 for number in range(3)}
    for row in trained:
        counts[row["iteration"]] += 1
        assert row["policy_version"] == 1 + row["iteration"]  # imitation is the first version
        assert row["advantage_mean"] is not None
        assert dict(row["parts"]) == {"spread": row["total"]}
    assert counts == {0: 16, 1: 16, 2: 16}
    others = [row for row in rows if row["split"] != "train"]
    assert others
    assert all(row["advantage_mean"] is None for row in others)


def test_turns_and_trajectories_and_metrics_tell_the_same(whole):
    turns = trajectories(whole)
    rows = table(whole, "trajectories")
    assert len(rows) == len(turns)
    for row in rows:
        own = turns[tuple(row[name] for name in ATTEMPT)]
        assert [turn["turn"] for turn in own] == list(range(row["turns"]))
        assert sum(len(turn["action_ids"]) for turn in own) == row["policy_tokens"]
        assert sum(turn["turn_total"] for turn in own) == pytest.approx(row["total"], abs=1e-12)
        told = [turn["advantages"] for turn in own]
        lengths = [len(turn["action_ids"]) for turn in own]
        train = row["split"] == "train"
        assert [each and len(each) for each in told] == (lengths if train else [None] * len(own))
    metrics = {
        (row["stage"], row["iteration"], row["name"]): row["value"]
        for row in table(whole, "metrics")
    }
    for number in range(3):
        totals = [r["total"] for r in rows if (r["split"], r["iteration"]) == ("train", number)]
        mean = sum(totals) / len(totals)
        assert metrics["reinforce", number, "reward/total"] == pytest.approx(mean, abs=1e-12)
        assert metrics["reinforce", number, "sync/logp_gap_max"] < LOGP_BOUND
    losses = [
        number for stage, number, name in metrics if (stage, name) == ("imitate", "loss/total")
    ]
    assert sorted(losses) == list(range(1, 13))


def test_the_evaluations_table_is_the_summarys(whole):
    told = json.loads((whole / "summary.json").read_text())["evaluations"]
    names = COLUMNS["evaluations"].split()
    stored = [
        {name: dict(row["by"]) if name == "by" else row[name] for name in names}
        for row in table(whole, "evaluations")
    ]
    order = itemgetter("stage", "iteration", "split", "mode", "metric")
    assert sorted(stored, key=order) == sorted(told, key=order)


def test_stored_turns_join_to_the_row_that_the_policy_saw(whole):
    several = 0
    for turns in trajectories(whole).values():
        assert not any(turn["fork"] for turn in turns)
        several += len(turns) > 1
        for before, turn in pairwise(turns):
            # What is new in a prompt is what the turn before drew, no token more or less.
            assert turn["prompt_ids"] == before["observation_ids"]
        for turn in turns:
            assert len(turn["action_ids"]) == len(turn["logp_rollout"]) > 0
    assert several > 10


def test_the_model_is_everybodys_and_gives_what_the_tables_say(whole):
    final = {k: t for k, t in trajectories(whole).items() if k[:2] == ("reinforce", 3)}
    rows = [
        dict(zip(("ids", "places", "logp"), whole_row(turns), strict=True))
        for turns in final.values()
    ]
    greedy = [turns[0] for key, turns in final.items() if key[3] == "greedy"]
    assert len(rows) == 12  # dev and test, sampled and greedy, three tasks each
    assert len(greedy) == 6
    prompts = [{"ids": t["prompt_ids"], "tokens": len(t["action_ids"])} for t in greedy]
    done = subprocess.run(
        [sys.executable, "-c", OUTSIDER, whole / "model"],
        input=json.dumps({"rows": rows, "prompts": prompts}),
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=True,
    )
    told = json.loads(done.stdout.partition("TOLD")[2])
    assert len(told["gaps"]) == sum(len(row["places"]) for row in rows)
    assert max(told["gaps"]) < LOGP_BOUND
    assert [ids for ids, _ in told["texts"]] == [turn["action_ids"] for turn in greedy]
    assert [text for _, text in told["texts"]] == [turn["action_text"] for turn in greedy]


def test_mlflow_has_the_run_with_all_that_belongs_to_it(whole):
    summary = json.loads((whole / "summary.json").read_text())
    found = read_back(whole.parent)["whole"]
    assert found["id"] == summary["artifacts"]["mlflow_run_id"]
    assert (found["status"], found["experiment"]) == ("FINISHED", "rag_r1")
    assert found["params"]["stages.reinforce.algorithm.name"] == "ppo"
    assert found["params"]["stages.reinforce.rollout.group_size"] == "4"
    assert found["tags"]["recipe_hash"] == summary["recipe_hash"]
    assert {"run", "lock", "seed"} <= set(found["tags"])
    assert set(found["artifacts"]) >= {"recipe.yaml", "model"}
    assert [item["name"] for item in found["inputs"]] == ["world"]
    sampled = found["metrics"]["eval/dev/sampled/exact_match"]
    # Before each stage, every second iteration, and at the end; the axis goes on over the stages.
    assert [step for step, _ in sampled] == [0, 12, 14, 15]
    rewards = [value for _, value in found["metrics"]["reward/total"]]
    rows = [row for row in table(whole, "metrics") if row["name"] == "reward/total"]
    assert rewards == [row["value"] for row in sorted(rows, key=lambda row: row["iteration"])]
    evaluations = len(
        {(r["stage"], r["iteration"], r["split"], r["mode"]) for r in summary["evaluations"]}
    )
    assert len(found["traces"]) == 3 * evaluations  # all tasks, though six would be stored
    assert {trace["state"] for trace in found["traces"]} == {"OK"}


def test_every_named_query_answers_from_the_run(whole, tmp_path):
    runs = tmp_path / "runs"
    runs.mkdir()
    shutil.copytree(whole / "tables", runs / "whole" / "tables")
    found = {name: query(name, runs) for name in list_queries()}
    for name, result in found.items():
        assert result.rows or name == "tools", name  # a policy of twelve steps may call nothing
    curve = found["curve"]
    at = {name: curve.columns.index(name) for name in ("stage", "iteration", "split", "seeds")}
    dev = [
        row for row in curve.rows if row[at["stage"]] == "reinforce" and row[at["split"]] == "dev"
    ]
    assert [row[at["iteration"]] for row in dev] == [0, 2, 3]
    assert {row[at["seeds"]] for row in dev} == {1}
    [(count,)] = query("SELECT count(*) FROM trajectories WHERE split = 'train'", runs).rows
    assert count == 48


def test_the_resolved_recipe_is_the_one_that_was_run(whole):
    text = (whole / "recipe.yaml").read_text()
    assert "name: rag_r1" in text
    assert text != RECIPE.read_text()
    assert "name: spread" in text
