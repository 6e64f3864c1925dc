"""A run whose policy edits its context: rows fork, and everything that holds of rows still does."""

from __future__ import annotations

from pathlib import Path

import pytest
from small import SMALL, experiment
from test_resume import StopAfter, rows, same

from agentrecipes.analysis.replay import replay
from agentrecipes.analysis.stored import open_run
from agentrecipes.analysis.verify import verify
from agentrecipes.cli.run import recipe_of
from agentrecipes.experiment import run
from agentrecipes.recipe.load import Recipe, load
from agentrecipes.training.signals import StopFlag

STACKED = Path(__file__).parents[2] / "recipes" / "agentic_rag_r1.yaml"
FORKING = [  # a model that has barely learned to write edits writes many of them
    *SMALL,
    "rollout.tokens=192",
    "rollout.tokens_per_turn=32",
    "environment.dataset.chains=[2]",
    "environment.dataset.conjunctions=[]",
    "stages.imitate.steps=40",
    "stages.imitate.demonstrations.lazy_query=1.0",
    "stages.imitate.demonstrations.backtrack=0.7",
    "stages.imitate.demonstrations.summary=1.0",
    "stages.imitate.trainer.checkpoint_every=40",
    "stages.imitate.optimizer.warmup_steps=4",
    "stages.reinforce.optimizer.warmup_steps=0",
    "rewards=[spread]",
]


def forking(*overrides: str) -> Recipe:
    return load(STACKED, [*FORKING, *overrides])


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A run that was not interrupted."""
    folder = tmp_path_factory.mktemp("stack") / "whole"
    run(experiment(forking(), folder))
    return folder


def edits(folder: Path) -> list[dict]:
    """The stored training turns whose context was edited."""
    return [row for row in rows(folder, "turns") if row["fork"] and row["split"] == "train"]


def test_the_trainer_computes_what_the_sampler_sampled_in_rows_that_forked(whole):
    assert len(edits(whole)) >= 10
    gaps = [row["value"] for row in rows(whole, "metrics") if row["name"] == "sync/logp_gap_max"]
    assert len(gaps) == 3
    assert 0.0 < max(gaps) < 1e-4


def test_the_certificate_counts_the_forks_and_finds_every_edit_in_its_place(whole):
    found = verify(open_run(whole), recipe_of(whole))
    assert (found["ok"], found["problems"]) == (True, [])
    assert found["forks"] >= len(edits(whole))
    assert found["retokenised"] == 0


def test_rewards_and_advantages_of_trajectories_that_forked_come_out_again(whole):
    found = replay(open_run(whole), recipe_of(whole))
    assert found["trajectories"] == 48
    assert (found["max_reward_gap"], found["max_advantage_gap"]) == (0.0, 0.0)


def test_a_run_that_forks_and_was_stopped_ends_as_one_that_was_not(whole, tmp_path):
    stop = StopFlag()
    watcher = StopAfter(stop, "reinforce", 1)
    told = run(experiment(forking(), tmp_path / "again"), watcher, stop=stop)
    assert told["status"] == "interrupted"
    told = run(experiment(forking(), tmp_path / "again"), resume=True)
    assert told["status"] == "finished"
    same(whole, tmp_path / "again")
