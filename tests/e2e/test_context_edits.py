"""A run whose policy edits its context: rows fork, and everything that holds of rows still does."""

from __future__ import annotations

from pathlib import Path

import pytest
from small import SMALL, experiment
from test_resume import StopAfter, rows, same

from agentrecipes.analysis.attempts import Attempt, read_attempts
from agentrecipes.analysis.certificate import Reader
from agentrecipes.analysis.replay import replay
from agentrecipes.analysis.stored import open_run
from agentrecipes.analysis.verify import verify
from agentrecipes.cli.run import recipe_of
from agentrecipes.experiment import run
from agentrecipes.models.loading import Files, read_tokenizer
from agentrecipes.recipe.load import Recipe, load
from agentrecipes.rollout.chat import Chat
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


def test_an_edit_that_shows_something_else_than_its_turns_is_found(whole):
    recipe, stored = recipe_of(whole), read_attempts(whole, ("imitate", "reinforce"))
    environment = recipe.stages[-1].environment
    chat = Chat(read_tokenizer(Files(str(whole / "model"))))
    reader = Reader(chat, environment.protocol, environment.context)
    forked = [a for own in stored.places.values() for a in own if any(t["fork"] for t in a.turns)]
    spoilt = 0
    for attempt in forked:
        assert list(reader.findings(attempt)) == []
        number = next(n for n, turn in enumerate(attempt.turns) if turn["fork"])
        turns = [dict(turn) for turn in attempt.turns]
        shown = turns[number]["prompt_ids"]
        turns[number]["prompt_ids"] = [*shown[:-1], shown[-1] + 1]
        found = reader.findings(Attempt(attempt.row, tuple(turns)))
        spoilt += ("context", number) in {(check, turn) for check, turn, _ in found}
    assert spoilt == len(forked) >= 10


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
