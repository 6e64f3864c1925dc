"""What a run tells of itself."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import torch
from small import small

from agentrecipes.health.tripwires import Verdict
from agentrecipes.training.position import Position
from agentrecipes.training.story import Story, as_json


def told(story: Story, folder: Path, seconds: float = 1.0) -> dict:
    return story.summary(small("seed=11"), folder, status="finished", seconds=seconds)


def test_steps_and_iterations_are_counted_by_the_kind_of_stage(tmp_path):
    recipe = small("stages.reinforce.trainer.minibatches=2", "stages.reinforce.trainer.epochs=3")
    story = Story()
    story.stage_done(recipe.stages[0], Position(iteration=6), 1.5)
    story.stage_done(recipe.stages[1], Position(iteration=5), 2.5)
    assert story.stages == [
        {"name": "imitate", "algorithm": "sft", "steps": 6, "iterations": 0, "wall_seconds": 1.5},
        # 2 minibatches, 3 times, in 5 iterations
        {
            "name": "reinforce",
            "algorithm": "ppo",
            "steps": 30,
            "iterations": 5,
            "wall_seconds": 2.5,
        },
    ]


def test_the_time_of_earlier_sittings_counts(tmp_path):
    assert told(Story(seconds=10.0), tmp_path, seconds=2.5)["wall_seconds"] == 12.5


def test_artifacts_are_named_where_they_exist(tmp_path):
    assert set(told(Story(), tmp_path)["artifacts"].values()) == {None}
    (tmp_path / "model").mkdir()
    (tmp_path / "report.html").touch()
    artifacts = told(Story(), tmp_path)["artifacts"]
    assert artifacts["model"] == str(tmp_path / "model")
    assert artifacts["report"] == str(tmp_path / "report.html")


def test_a_run_is_named_after_its_folder_and_recipe(tmp_path):
    summary = told(Story(), tmp_path / "here")
    assert (summary["run"], summary["dir"]) == ("here", str(tmp_path / "here"))
    assert (summary["seed"], summary["profile"], summary["status"]) == (11, None, "finished")
    assert summary["recipe_hash"] == small("seed=12").hash  # the seeds of a recipe share it


def test_an_evaluation_is_known_by_stage_iteration_and_split():
    story = Story()
    assert not story.was_measured_at("reinforce", 3, "dev")
    for iteration in (2, 3):
        story.evaluations.append({"stage": "reinforce", "iteration": iteration, "split": "dev"})
    assert story.was_measured_at("reinforce", 3, "dev")
    assert story.was_measured_at("reinforce", 2, "dev")
    for place in (("reinforce", 1, "dev"), ("imitate", 3, "dev"), ("reinforce", 3, "test")):
        assert not story.was_measured_at(*place)


def test_a_story_survives_a_checkpoint(tmp_path):
    story = Story(seconds=3.0)
    story.verdict(Verdict("warn", "too low", {"score": 0.25}))
    story.stage_done(small().stages[0], Position(iteration=6), 1.5)
    torch.save(asdict(story), tmp_path / "story.pt")
    again = Story(**torch.load(tmp_path / "story.pt", weights_only=True))
    assert again == story
    assert again.tripwires == [
        {"action": "warn", "message": "too low", "evidence": {"score": 0.25}}
    ]


def test_json_keeps_every_letter_and_writes_paths_as_text():
    data = as_json({"text": "größer", "folder": Path("runs/x")})
    assert json.loads(data) == {"text": "größer", "folder": "runs/x"}
    assert "größer".encode() in data
