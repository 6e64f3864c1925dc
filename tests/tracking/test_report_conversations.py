"""The browser's data: compact, within its budget, and unable to leave its element."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentrecipes.tracking.report.conversations import RunTrajectories, payload
from agentrecipes.tracking.report.pieces import Pieces

PIECES = Pieces({n: f" w{n}" for n in range(10_000)}, {0: "<|user|>"}, byte_level=False)
PLACE = {"stage": "reinforce", "iteration": 3, "split": "train", "mode": "sampled"}


def a_turn(prompt, action, observation=(), **more: Any):
    return {
        **{"prompt_ids": list(prompt), "action_ids": list(action)},
        **{"observation_ids": list(observation), "fork": False, "valid": True},
        **{"action_text": "did <this>", "observation_text": "saw", "turn_total": 0.0},
        **{"engine_seconds": 0.51234, "tool_seconds": None},
        "logp_rollout": [-0.123456 * (n + 1) for n in range(len(action))],
        **more,
    }


def a_trajectory(*turns: Any, **more: Any):
    return {
        **{
            **PLACE,
            "group_id": "g",
            "attempt": 1,
            "role": "policy",
            "task": "t",
            "stop": "answered",
        },
        **{"total": 0.5, "parts": {"exact_match": 0.5}, "advantage_mean": -0.25},
        **{"answer": "Rome", "gold": ["Rome"], "policy_version": 3, "seconds": 1.5},
        "turns": list(turns),
        **more,
    }


def data(*trajectories: Any, pieces=PIECES, **more: Any):
    return json.loads(payload([RunTrajectories("run", trajectories, pieces)], **more).text)


def said(found, passage):
    return [found["pieces"][number] if number >= 0 else number for number in passage]


def test_a_turn_is_told_token_by_token():
    found = data(a_trajectory(a_turn((0, 5), (7, 8), (9,))))
    [one] = found["trajectories"]
    [turn] = one["turns"]
    assert said(found, turn["prompt"]) == ["<|user|>", " w5"]
    assert said(found, turn["action"]) == [" w7", " w8"]
    assert turn["surprise"] == [1235, 2469]  # 1e-4 nats
    assert turn["tokens"] == [2, 2, 1]
    assert [found["ids"][number] for number in turn["action"]] == [7, 8]
    assert (one["total"], one["advantage"], one["group"]) == (0.5, -0.25, "g")
    assert found["places"] == [["reinforce", 3, "train", "sampled"]]


def test_an_observation_is_not_told_again_in_the_next_prompt():
    turns = (a_turn((0,), (7,), (4, 5)), a_turn((4, 5, 6), (8,)))
    found = data(a_trajectory(*turns))
    assert said(found, found["trajectories"][0]["turns"][1]["prompt"]) == [" w6"]


def test_a_fork_tells_its_whole_prompt():
    turns = (a_turn((0,), (7,), (4, 5)), a_turn((4, 5, 6), (8,), fork=True))
    found = data(a_trajectory(*turns))
    turn = found["trajectories"][0]["turns"][1]
    assert (turn["fork"], said(found, turn["prompt"])) == (True, [" w4", " w5", " w6"])


def test_advantages_by_token_are_told_where_the_run_wrote_them():
    with_them = a_turn((0,), (7, 8), advantages=[0.5, None])
    shared = a_turn((), (7, 8, 9), advantages=[0.0, 0.0, 0.0])
    [one] = data(a_trajectory(with_them, shared, a_turn((), (7,))))["trajectories"]
    assert [turn.get("advantages") for turn in one["turns"]] == [[0.5, None], [0.0], None]


def test_without_a_tokenizer_passages_are_texts():
    [one] = data(a_trajectory(a_turn((1,), (2,), (3,))), pieces=None)["trajectories"]
    [turn] = one["turns"]
    assert (turn["action"], turn["observation"]) == ("did <this>", "saw")
    assert "prompt" not in turn  # no table has its text
    assert turn["tokens"] == [1, 1, 1]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_figure_that_json_lacks_is_null(value):
    [one] = data(a_trajectory(total=value, parts={"p": value}))["trajectories"]
    assert (one["total"], one["parts"]) == (None, {"p": None})


def test_nothing_that_was_said_can_end_the_element_it_stands_in():
    hostile = "</script><script>alert(1)</script><!-- & \u2028"
    pieces = Pieces({1: hostile}, {}, byte_level=False)
    run = RunTrajectories("run", [a_trajectory(a_turn((1,), (1,)), answer=hostile)], pieces)
    text = payload([run]).text
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text)["trajectories"][0]["answer"] == hostile


def test_long_passages_lose_their_middle_when_the_budget_asks_for_it():
    one = a_trajectory(a_turn((), range(10, 5010)))
    whole = payload([RunTrajectories("run", [one], PIECES)], budget=200_000)
    assert whole.longest == 4000  # the first limit that fits
    found = json.loads(whole.text)
    [turn] = found["trajectories"][0]["turns"]
    shown = said(found, turn["action"])
    assert (len(shown), shown[0], shown[2000], shown[-1]) == (4001, " w10", -1000, " w5009")
    assert len(turn["surprise"]) == 4001  # still one for each place
    assert turn["tokens"] == [0, 5000, 0]


def test_texts_lose_their_middle_too():
    one = a_trajectory(a_turn((), (1,), action_text="a" * 30_000))
    found = payload([RunTrajectories("run", [one], None)])
    [turn] = json.loads(found.text)["trajectories"][0]["turns"]
    assert (found.longest, len(turn["action"])) == (4000, 24_000 + len(" […] "))


def test_short_passages_say_nothing_of_a_limit():
    assert (
        payload([RunTrajectories("run", [a_trajectory(a_turn((1,), (2,)))], PIECES)]).longest
        is None
    )


def test_the_last_trajectories_go_when_short_passages_are_not_enough():
    rows = [a_trajectory(a_turn((1,), (2,)), task=f"t{n}") for n in range(100)]
    found = payload([RunTrajectories("run", rows, PIECES)], budget=10_000)
    kept = [one["task"] for one in json.loads(found.text)["trajectories"]]
    assert len(found.text.encode()) <= 10_000
    assert kept == [f"t{n}" for n in range(found.count)]
    assert 10 < found.count < 100


def test_a_budget_for_nothing_gives_no_trajectories():
    found = payload([RunTrajectories("run", [a_trajectory()], PIECES)], budget=100)
    assert (found.count, json.loads(found.text)["trajectories"]) == (0, [])
