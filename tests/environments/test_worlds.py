"""The worlds with the libraries that they need: TextWorld, Gymnasium, Reasoning Gym."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentrecipes.components import build
from agentrecipes.errors import RecipeError
from agentrecipes.records import Stop
from agentrecipes.rollout.play import play as play_by_the_rules
from agentrecipes.rollout.play import texts
from agentrecipes.testing.play import play
from agentrecipes.testing.suites import DatasetSuite, EnvironmentSuite

pytestmark = pytest.mark.envs
GAMES = Path(__file__).parents[2] / "recipes" / "data" / "textworld"
TAXI = {
    "id": "Taxi-v4",
    "options": {},
    "actions": ["south", "north", "east", "west", "pick up", "drop off"],
    "about": "Fetch the passenger at () and drive to the goal {}.",
    "win_at": -20.0,
    "max_turns": 40,
}
CARDS = {
    "id": "Blackjack-v1",
    "options": {},
    "actions": ["stick", "hit"],
    "about": "Come closer to 21 than the dealer.",
    "show": "observation",
    "entries": ["sum", "dealer", "ace"],
    "max_turns": 10,
}


def textworld(**fields: object) -> Any:
    return build("environment", {"name": "textworld", "max_turns": 6, **fields})


class TestTextworld(EnvironmentSuite):
    random_at_most = 0.5  # the coin lies three commands away

    @pytest.fixture
    def environment(self):
        return textworld()


class TestFrozenLake(EnvironmentSuite):
    @pytest.fixture
    def environment(self):
        return build("environment", "gymnasium")


class TestTaxi(EnvironmentSuite):
    played = 5
    random_at_most = 0.0

    def test_a_random_agent_is_understood_and_loses(self, environment):
        played = [play(environment, t, agent="random") for t in self.tasks(environment)]
        assert [one.answer for one in played if one.answer == "won"] == []

    @pytest.fixture
    def environment(self):
        return build("environment", {"name": "gymnasium", **TAXI})


class TestBlackjack(EnvironmentSuite):
    oracle_at_least = 0.45  # it knows the cards, and some hands cannot be won; .58 over 90 hands
    random_at_most = 0.4

    @pytest.fixture
    def environment(self):
        return build("environment", {"name": "gymnasium", **CARDS})


class TestReasoningGym(DatasetSuite):
    @pytest.fixture
    def dataset(self):
        return build("dataset", {"name": "reasoning_gym", "train": 20, "dev": 8, "test": 8})


class TestPuzzles(EnvironmentSuite):
    played = 8

    @pytest.fixture
    def environment(self):
        dataset = {"name": "reasoning_gym", "task": "gcd", "train": 20, "dev": 8, "test": 8}
        parts = {"tools": ["calculator"], "protocol": "pythonic", "instructions": "none"}
        return build("environment", {"name": "math", "dataset": dataset, **parts})


def test_every_shipped_walkthrough_wins_as_a_script():
    environment = textworld()
    for task in environment.tasks("test"):
        lines = [f"<action> {command} </action>" for command in task.data["walkthrough"]]
        played = play_by_the_rules(environment, task, agent=texts(lines))
        assert (played.stop, played.answer, played.turns) == (Stop.ANSWERED, "won", len(lines))
        assert sum(played.rewards) == 1.0
        assert build("reward", "environment").score(played.view) == list(played.rewards)


def test_a_broken_game_fails_alone_and_names_its_file(tmp_path):
    for name in ("coin_level3_seed101", "custom_q3_seed101"):
        for ending in (".z8", ".json"):
            shutil.copy(GAMES / f"{name}{ending}", tmp_path)
    broken = tmp_path / "custom_q3_seed101.z8"
    broken.chmod(0o644)
    broken.write_bytes(broken.read_bytes()[:5000])
    environment = textworld(dataset={"name": "games", "path": str(tmp_path)})
    good, bad = [
        play_by_the_rules(environment, task, agent=environment.oracle)
        for task in environment.tasks("train")
    ]
    assert (good.stop, good.answer) == (Stop.ANSWERED, "won")
    assert bad.stop == Stop.TOOL_ERROR
    assert bad.error.startswith(f"the game {broken} cannot be played: it ends after 5000 of")


def test_a_game_shows_no_banner_and_no_commands_where_the_recipe_says_so():
    task = textworld().tasks("train")[0]
    [message] = textworld(instructions="none", commands=False, score=False).open(task, 0).messages
    assert "$$" not in message.content
    assert "Commands:" not in message.content
    assert message.content.startswith("Get ready to pick stuff up")
    assert "Commands: go west, inventory, look" in textworld().open(task, 0).messages[0].content


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id": "FrozenPond-v1"}, "the world 'FrozenPond-v1' cannot be made: "),
        ({"options": {"holes": 3}}, "cannot be made: TypeError"),
        ({"actions": ["left", "right"]}, "FrozenLake-v1 has 4 actions, but 2 words"),
    ],
)
def test_a_world_that_cannot_be_is_refused_before_anything_is_played(fields, message):
    with pytest.raises(RecipeError, match=message):
        build("environment", {"name": "gymnasium", **fields}).require()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"task": "chainsum"}, "no generator called 'chainsum'. Did you mean 'chain_sum'"),
        ({"config": {"min_term": 3}}, "chain_sum does not take"),
    ],
)
def test_a_generator_that_is_not_there_is_refused(fields, message):
    with pytest.raises(RecipeError, match=message):
        build("dataset", {"name": "reasoning_gym", **fields}).require()


def test_a_puzzle_counts_by_its_own_scorer():
    fields = {"task": "countdown", "config": {"min_numbers": 3, "max_numbers": 3}, "dev": 3}
    dataset = build("dataset", {"name": "reasoning_gym", **fields})
    environment = build("environment", {"name": "math", "dataset": dataset, "tools": ["calculator"],
                                        "protocol": "pythonic"})  # fmt: skip
    task = dataset.tasks("dev")[0]
    turned = f"({task.gold_answers[0]}) * 1 / 1"  # the numbers once more: not allowed
    said = [f"<answer> {text} </answer>" for text in (f"0 + {task.gold_answers[0]}", turned)]
    views = [play_by_the_rules(environment, task, agent=texts([text])).view for text in said]
    reward = build("reward", "reasoning_gym")
    assert reward.score(play(environment, task).view) == 1.0
    assert all((reward.score(view) or 0.0) < 0.2 for view in views)


def test_a_game_that_is_made_with_the_recipe_s_command_is_won_by_its_walkthrough(tmp_path):
    game = tmp_path / "dev" / "w2o3q4_seed5.z8"
    sizes = {"--world-size": 2, "--nb-objects": 3, "--quest-length": 4, "--seed": 5}
    words = [str(word) for pair in sizes.items() for word in pair]
    maker = Path(sys.executable).with_name("tw-make")
    subprocess.run(
        [maker, "custom", *words, "--output", game], check=True, capture_output=True, timeout=300
    )
    world = textworld(dataset={"name": "games", "path": str(tmp_path)}, max_turns=12)
    [task] = world.tasks("dev")
    assert (task.id, task.data["type"]) == ("dev/w2o3q4_seed5", "w2o3q4")
    assert list(world.tasks("train")) == []
    assert play_by_the_rules(world, task, agent=world.oracle).view.answer == "won"
