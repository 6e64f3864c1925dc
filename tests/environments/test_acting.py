"""Worlds that are acted in: how they are shown, how they end, what is refused."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from corridor import Interpreter, World

from agentrecipes.components import build
from agentrecipes.environments import story
from agentrecipes.environments.gymnasium import Place, WorldEpisode
from agentrecipes.environments.planning import foreseen, planned
from agentrecipes.environments.textworld import Game, GameEpisode
from agentrecipes.errors import RecipeError, TaskFailed
from agentrecipes.records import Action, Call, Task

GAMES = Path(__file__).parents[2] / "recipes" / "data" / "textworld"
TASK = Task("t", "dev", "Play.", ("won",))


def said(*commands: str, tool: str = "act") -> Action:
    return Action("t", tuple(Call(tool, {"command": one}) for one in commands))


def game(**fields: object) -> GameEpisode:
    world = build("environment", {"name": "textworld", **fields})
    interpreter = Interpreter()
    return GameEpisode(TASK, (), world, Game(interpreter, interpreter.state()))


def world(**fields: object) -> WorldEpisode:
    part = build(
        "environment", {"name": "gymnasium", "actions": ["left", "right", "jump"], **fields}
    )
    return WorldEpisode(TASK, (), part, Place(World(), part.win_at))


def steps(episode: Any, *actions: Action) -> list[Any]:
    return [asyncio.run(episode.step(action)) for action in actions]


def test_a_game_is_won_by_its_state_and_pays_by_points():
    first, last = steps(game(), said("go east"), said("go east"))
    assert first.observation == (
        "-= Room 1 =-\nIt is quiet.\nScore: 1 of 2\nCommands: go east, go west"
    )
    assert (first.done, first.answer, first.reward) == (False, None, 0.5)
    assert last.observation == "-= Room 2 =-\nIt is quiet.\nScore: 2 of 2"
    assert (last.done, last.answer, last.reward) == (True, "won", 0.5)


def test_several_commands_of_a_turn_are_said_until_the_game_is_over():
    hermes = game(protocol={"name": "hermes", "calls_per_turn": 3}, commands=False, score=False)
    [outcome] = steps(hermes, said("go west", "go east"))
    assert (outcome.done, outcome.answer) == (True, "lost")
    assert outcome.observation.count("<tool_response>") == 2
    assert "error: the game is over" in outcome.observation
    assert "Score" not in outcome.observation


@pytest.mark.parametrize(
    ("action", "error"),
    [
        (said("save"), "'save' is no command of this game"),
        (said("Quit. go east"), "'quit' is no command of this game"),
        (said("go " + "x" * 200), "up to 120 characters"),
        (said("go öst"), "characters of ASCII"),
        (said("  "), "only act takes calls here, with a command"),
        (said("go east", tool="walk"), "only act takes calls here"),
        (Action("t", (Call("act", {"command": 3}),)), "only act takes calls here"),
    ],
)
def test_what_is_no_command_of_the_game_is_not_passed_on(action, error):
    episode = game()
    [outcome] = steps(episode, action)
    assert error in outcome.observation
    assert (episode.game.state.score, outcome.done, outcome.reward) == (0, False, 0.0)


@pytest.mark.parametrize("make", [game, world])
def test_an_answer_gives_up_and_never_wins(make):
    for answer, kept in (("I am lost", "I am lost"), ("won", "not won"), ("Won!", "not Won!")):
        [outcome] = steps(make(), Action(answer=answer))
        assert (outcome.done, outcome.answer, outcome.reward) == (True, kept, 0.0)


def test_an_interpreter_that_fails_fails_the_task_and_is_closed():
    episode = game()
    with pytest.raises(OSError, match="lamp"):  # the rollout makes a failed task of it
        steps(episode, said("break"))
    asyncio.run(episode.close())
    assert episode.game.interpreter.closed


def test_the_walkthrough_is_followed_and_a_random_agent_says_what_it_was_shown():
    part = build("environment", "textworld")
    oracle = part.oracle(Task("t", "dev", "?", (), {"walkthrough": ["go east", "take coin"]}))
    commands = [oracle(None).calls[0].arguments["command"] for _ in range(3)]
    assert commands == ["go east", "take coin", "look"]
    agent = part.random(TASK, 3)
    shown = "A room.\nScore: 0 of 1\nCommands: open door, eat tea"
    heard = {agent(shown).calls[0].arguments["command"] for _ in range(30)}
    assert heard == {"open door", "eat tea"}
    blind = {agent(None).calls[0].arguments["command"] for _ in range(60)}
    assert blind == {"look", "inventory", "go north", "go east", "go south", "go west"}


def test_the_shipped_games_are_whole_and_told():
    [coin, custom] = build("dataset", "games").tasks("train")
    assert (coin.id, coin.type, coin.gold_answers) == (
        "coin_level3_seed101",
        "coin_level3",
        ("won",),
    )
    assert coin.data["walkthrough"] == ["go west", "go west", "take coin"]
    assert "pick-up the coin" in coin.question
    assert [story.fault(Path(task.data["file"])) for task in (coin, custom)] == [None, None]
    first, _ = build("dataset", "games").tasks("dev")
    assert first.id == "coin_level3_seed101@dev"


@pytest.fixture
def games(tmp_path):
    """A folder with a good game and three broken ones."""
    good = GAMES / "coin_level3_seed101.z8"
    data = good.read_bytes()
    for name in ("a_good", "b_short", "c_changed", "d_alone", "e_told_badly"):
        (tmp_path / f"{name}.z8").write_bytes(data)
        if name != "d_alone":
            shutil.copy(good.with_suffix(".json"), tmp_path / f"{name}.json")
    (tmp_path / "b_short.z8").write_bytes(data[:1000])
    changed = bytearray(data)
    changed[5000] ^= 1
    (tmp_path / "c_changed.z8").write_bytes(changed)
    (tmp_path / "e_told_badly.json").write_text("{")
    (tmp_path / "f_empty.ulx").write_bytes(b"")
    return tmp_path


def test_a_broken_game_says_what_is_wrong_and_leaves_the_others(games):
    tasks = build("dataset", {"name": "games", "path": str(games)}).tasks("train")
    faults = {task.id: story.fault(Path(task.data["file"])) for task in tasks}
    assert faults == {
        "a_good": None,
        "b_short": "it ends after 1000 of 382336 bytes",
        "c_changed": "its checksum does not match",
        "d_alone": "d_alone.json is not beside it",
        "e_told_badly": faults["e_told_badly"],
        "f_empty": "it is no Glulx story",
    }
    assert "e_told_badly.json is no JSON" in str(faults["e_told_badly"])
    assert "walkthrough" in tasks[0].data
    assert "walkthrough" not in tasks[3].data


def test_folders_say_the_split_of_a_game(tmp_path):
    for split in ("train", "dev", "test"):
        (tmp_path / split).mkdir()
    (tmp_path / "train" / "x_seed1.z8").write_bytes(b"")
    (tmp_path / "dev" / "x_seed1.z8").write_bytes(b"")
    (tmp_path / "y.z8").write_bytes(b"")
    games = build("dataset", {"name": "games", "path": str(tmp_path)})
    ids = {split: [task.id for task in games.tasks(split)] for split in ("train", "dev", "test")}
    assert ids == {
        "train": ["train/x_seed1", "y"],
        "dev": ["dev/x_seed1", "y@dev"],
        "test": ["y@test"],
    }


def test_a_folder_without_games_is_refused(tmp_path):
    with pytest.raises(RecipeError, match=r"no game lies there. Give a folder with .z8"):
        build("dataset", {"name": "games", "path": str(tmp_path)}).tasks("train")


def test_a_glulx_story_is_held_to_its_checksum(tmp_path):
    # 40 bytes: magic, eight words, and one word 5; the checksum is the sum of all other words.
    words = [0x476C756C, 0, 0, 40, 0, 0, 0, 0, 0, 5]
    words[8] = (sum(words)) & 0xFFFFFFFF
    file = tmp_path / "x.ulx"
    (tmp_path / "x.json").write_text(json.dumps({}))
    file.write_bytes(b"".join(word.to_bytes(4, "big") for word in words))
    assert story.fault(file) is None
    words[9] = 6
    file.write_bytes(b"".join(word.to_bytes(4, "big") for word in words))
    assert story.fault(file) == "its checksum does not match"


def test_a_world_is_won_by_its_return():
    first, last = steps(world(win_at=0.75), said("right"), said(" RIGHT "))
    assert (first.observation, first.reward, first.done) == ("  (Right)\nS[F]G", -0.25, False)
    assert (last.observation, last.reward, last.answer) == ("  (Right)\nSF[G]", 1.0, "won")
    assert steps(world(), said("right"), said("right"))[1].answer == "lost"  # 0.75 is not 1


def test_an_observation_is_told_in_words():
    told = world(show="observation", entries=["field", "left"])
    assert steps(told, said("right"))[0].observation == "field: 1, left: 1"
    assert steps(world(show="observation"), said("left"))[0].observation == "(0, 2)"


def test_an_unknown_action_is_answered_and_a_world_that_fails_fails_the_task():
    [outcome] = steps(world(), said("up"))
    assert "no action is called so. Do one of: left, right, jump" in outcome.observation
    with pytest.raises(TaskFailed, match="FrozenLake-v1 failed: ValueError: no such thing"):
        steps(world(), said("jump"))


def test_two_actions_of_one_name_are_a_problem():
    part = build("environment", {"name": "gymnasium", "actions": ["up", "up"]})
    assert [one.code for one in part.rules(SimpleNamespace())] == ["two_actions_of_one_name"]


def test_seeds_of_a_world_differ_between_splits_and_stay():
    part = build("environment", {"name": "gymnasium", "train": 30, "dev": 20})
    seeds = [task.data["seed"] for split in ("train", "dev") for task in part.tasks(split)]
    assert len(set(seeds)) == 50
    assert part.tasks("train")[3].id == "FrozenLake-v1-train-3"


def test_planning_prefers_the_sure_way():
    # State 0: action 0 ends with 0.4; action 1 leads to state 1, from where action 0 ends with 1 in
    # half of the cases: 0.99 · 0.5 = 0.495 > 0.4. With a chance of 0.4 it is 0.396 < 0.4.
    def table(chance: float) -> Any:
        end = [(chance, 1, 1.0, True), (1 - chance, 1, 0.0, True)]
        return {0: {0: [(1.0, 0, 0.4, True)], 1: [(1.0, 1, 0.0, False)]}, 1: {0: end, 1: end}}

    assert (planned(table(0.5))[0], planned(table(0.4))[0]) == (1, 0)


def test_without_a_table_copies_are_tried():
    start = World()
    assert foreseen(start, range(2)) == [1, 1]
    assert start.field == 0
