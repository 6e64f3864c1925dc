"""The preview of a curriculum, from the outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.snapshot import check_snapshot, settled
from tests.tracking.made import store

STAGED = """\
name: staged
seed: 3
model: tiny
environment: {name: search, dataset: {name: world, train: 60, dev: 10, test: 10}}
rewards: [exact_match]
rollout: {tasks: 8, group_size: 4}
stages:
  - name: imitate
    algorithm: sft
    demonstrations: scripted
    steps: 2
  - name: first
    algorithm: grpo
    iterations: 12
    curriculum:
      name: stages
      plan: [{shares: {chain-1: 3, chain-3: 1}}, {from: 6, shares: {chain-3: 1}}]
  - name: second
    algorithm: grpo
    iterations: 30
"""


@pytest.fixture
def staged(command):
    """A recipe with two stages that collect and one that reads data."""
    Path("staged.yaml").write_text(STAGED)
    return Path("staged.yaml")


def test_the_preview_shows_what_comes_when(command, staged, tmp_path):
    done = command("curriculum", staged, "--stage", "first")
    assert (done.code, done.err) == (0, "")
    check_snapshot("curriculum", settled(done.out, tmp_path))
    assert max(map(len, done.out.splitlines()[2:])) <= 80


def test_with_json_every_iteration_has_its_shares(command, staged):
    words = ("curriculum", staged, "--stage", "first", "--iterations", 7, "--json")
    told = json.loads(command(*words).out)
    assert [one["iteration"] for one in told["iterations"]] == list(range(7))
    assert {one["tasks"] for one in told["iterations"]} == {8}
    assert [one["by"] for one in told["iterations"]] == [{"chain-1": 0.75, "chain-3": 0.25}] * 6 + [
        {"chain-3": 1.0}
    ]
    # chain-1 is the first of five types and starts at 0.6, chain-3 (with its 3 hops) the fourth
    first, second = (told["iterations"][n]["expected_success"] for n in (0, 1))
    assert first == pytest.approx(0.75 * 0.6 + 0.25 * 0.225)
    assert second > first
    assert (told["curriculum"], told["stopped"]) == ("stages", None)


def test_the_last_stage_that_collects_is_the_default_and_its_length_too(command, staged):
    told = json.loads(command("curriculum", staged, "--json").out)
    assert (told["stage"], len(told["iterations"])) == ("second", 30)
    other = json.loads(command("curriculum", staged, "--json", "--by", "hops").out)
    assert set(other["iterations"][0]["by"]) <= {"1", "2", "3"}


def test_recorded_rates_are_read_from_a_file(command, staged):
    Path("rates.jsonl").write_text(
        '{"type": "chain-1", "rate": 0.5}\n{"type": "chain-3", "rate": 0.25}\n'
    )
    words = ("curriculum", staged, "--stage", "first", "--rates", "rates.jsonl", "--json")
    told = json.loads(command(*words).out)
    found = [one["expected_success"] for one in told["iterations"]]
    assert found == pytest.approx([0.75 * 0.5 + 0.25 * 0.25] * 6 + [0.25] * 6)
    assert told["rates"].startswith("rates.jsonl: 0 of 60 tasks, 2 types")


def test_a_finished_run_s_rates_need_tasks_of_the_recipe(command, staged):
    Path(store(Path("runs")) / "demo-1" / "recipe.yaml").touch()  # tasks t0, t1 and t2
    done = command("curriculum", staged, "--rates", "demo-1")
    assert done.code == 2
    assert "holds no rate of a training task of this recipe" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--stage", "imitate"), "stage 'imitate' picks no tasks: sft reads data. Name 'first'"),
        (("--stage", "frist"), "no stage is called 'frist'. Did you mean 'first'?"),
        (("--rates", "nowhere"), "there is no run 'nowhere'"),
        (("--rates", "nowhere.jsonl"), "nowhere.jsonl: cannot be read"),
        (("curriculum={name: weighted, weights: {x: 1}}",), "no training task has type 'x'"),
    ],
)
def test_what_cannot_be_previewed_is_said_in_one_line(command, staged, words, said):
    done = command("curriculum", staged, *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_a_curriculum_that_runs_out_is_shown_until_there(command, staged):
    words = ("curriculum", staged, "stages.second.curriculum={name: hard_pool, loops: 1}")
    done = command(*words)
    assert done.code == 0
    assert "stops at iteration 8: curriculum hard_pool: the pool is empty" in done.out
    told = json.loads(command(*words, "--json").out)
    assert len(told["iterations"]) == 8
    assert told["stopped"].startswith("iteration 8: ")
