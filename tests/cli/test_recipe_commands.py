"""check, show, list, env and score, from the outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.snapshot import check_snapshot, settled

SMALL = """\
name: small
seed: 3
model: tiny
environment: {name: search, dataset: {name: world, train: 20, dev: 10, test: 10}}
rewards:
  - exact_match
algorithm: {name: grpo, clip_high: {schedule: linear, from: 0.2, to: 0.4, over: 10}}
rollout: {tasks: 2, group_size: 2}
iterations: 2
tests:
  - task: {question: "Where?", golden_answers: [Rome]}
    turns:
      - {action: "<answer> Rome </answer>", observation: null}
    expect: {exact_match: 1.0}
profiles:
  short: {iterations: 1}
"""
TRANSCRIPTS = [
    {
        "id": "right",
        "task": {"question": "Where?", "golden_answers": ["Rome"]},
        "turns": [
            {"action": "<search> Rome </search>", "observation": "nothing"},
            {"action": "<answer> Rome </answer>", "observation": None},
        ],
    },
    {
        "id": "wrong",
        "task": {"question": "Where?", "golden_answers": ["Rome"]},
        "turns": [{"action": "<answer> Paris </answer>", "observation": None}],
    },
]


@pytest.fixture
def small(command):
    """A valid recipe in the folder where commands run."""
    Path("small.yaml").write_text(SMALL)
    return Path("small.yaml")


@pytest.fixture
def transcripts(command):
    """Two written transcripts, one a line."""
    path = Path("transcripts.jsonl")
    path.write_text("".join(json.dumps(line) + "\n" for line in TRANSCRIPTS))
    return path


def test_a_valid_recipe_is_one_line(command, small, tmp_path):
    done = command("check", small)
    assert (done.code, done.err) == (0, "")
    check_snapshot("check_ok", settled(done.out, tmp_path))


def test_check_with_json_has_the_promised_keys(command, small):
    told = json.loads(command("check", small, "--json").out)
    assert told["ok"] is True
    assert told["problems"] == []
    assert len(told["recipe_hash"]) == 64
    again = json.loads(command("check", small, "seed=4", "--json").out)
    assert again["recipe_hash"] == told["recipe_hash"]  # the seeds of one recipe share it
    other = json.loads(command("check", small, "--profile", "short", "--json").out)
    assert other["recipe_hash"] != told["recipe_hash"]


def test_all_problems_of_all_files_are_in_one_list(command, small, tmp_path):
    Path("first.yaml").write_text(SMALL.replace("group_size", "grop_size"))
    Path("second.yaml").write_text(SMALL.replace("name: grpo", "name: gpro"))
    done = command("check", "first.yaml", small, "second.yaml", "nowhere.yaml", "--json")
    told = json.loads(done.out)
    assert (done.code, told["ok"], told["recipe_hash"]) == (2, False, None)
    keys = {"code", "severity", "file", "line", "column", "path", "message", "suggestion"}
    assert all(set(problem) == keys for problem in told["problems"])
    files = [problem["file"] for problem in told["problems"]]
    assert {"first.yaml", "second.yaml"} <= set(files)
    check_snapshot("check_problems", settled(done.err, tmp_path))


def test_a_recipe_s_own_examples_are_scored_when_asked(command, small):
    assert command("check", small, "--rewards").code == 0
    small.write_text(SMALL.replace("exact_match: 1.0}", "exact_match: 0.0, other: 1.0}"))
    assert command("check", small).code == 0
    done = command("check", small, "--rewards")
    assert done.code == 2
    assert "exact_match is 1.0, but 0.0 was expected" in done.err
    assert "no reward of the last stage is called 'other'" in done.err
    text = small.read_text().splitlines()
    line = next(n for n, each in enumerate(text, start=1) if "exact_match: 0.0" in each)
    assert f"{small.name}:{line} tests[0].expect.exact_match: " in done.err


def test_an_example_may_expect_the_total_and_a_null_says_why(command, small):
    text = SMALL.replace("exact_match: 1.0}", "total: 2.0}")
    small.write_text(text)
    assert "total is 1.0, but 2.0 was expected" in command("check", small, "--rewards").err
    small.write_text(text.replace("golden_answers: ", "no_answers: "))
    told = json.loads(command("check", small, "--rewards", "--json").out)
    [problem] = told["problems"]
    assert "(exact_match could not be computed)" in problem["message"]
    assert isinstance(problem["line"], int)
    small.write_text(text.replace("action: ", "act: "))
    assert (
        "tests[0].turns: 'turns[0]' needs an 'action'" in command("check", small, "--rewards").err
    )


def test_show_tells_every_value_and_who_wrote_it(command, small, tmp_path):
    done = command("show", small, "rollout.tasks=4", "--profile", "short")
    assert (done.code, done.err) == (0, "")
    written = [line for line in done.out.splitlines() if not line.endswith(" default")]
    check_snapshot("show_written", settled("\n".join(written), tmp_path))
    lines = {line.split()[0]: line.split() for line in done.out.splitlines() if line[:2] == "  "}
    assert lines["rollout.tasks"][1:] == ["4", "command", "line"]
    assert lines["rollout.group_size"][1:] == ["2", "small.yaml:8"]
    assert lines["iterations"][1:3] == ["1", "profile"]


def test_show_with_json_has_the_recipe_and_the_origins(command, small):
    told = json.loads(command("show", small, "--json").out)
    assert told["recipe"]["name"] == "small"
    assert told["origin"]["seed"] == "small.yaml:2"
    assert told["recipe"]["stages"][0]["algorithm"]["clip_high"]["schedule"] == "linear"


def test_list_shows_parts_and_their_fields(command, tmp_path):
    everything = command("list")
    assert everything.code == 0
    assert {line.split()[0] for line in everything.out.splitlines()[1:]} >= {"reward", "algorithm"}
    one = json.loads(command("list", "environment", "--json").out)
    search = next(part for part in one["parts"] if part["name"] == "search")
    assert "max_turns" in [field["name"] for field in search["fields"]]
    wrong = command("list", "enviroment")
    assert (wrong.code, wrong.out) == (2, "")
    check_snapshot("list_unknown_kind", settled(wrong.err, tmp_path))


def test_the_oracle_plays_best(command, small):
    done = command("env", small, "--episodes", "3", "--json")
    told = json.loads(done.out)
    assert done.code == 0
    assert len(told["episodes"]) == 3
    assert set(told["episodes"][0]) >= {"task", "turns", "stop", "answer", "parts", "total"}
    assert told["mean_total"] == 1.0


def test_random_actions_are_the_same_every_time_and_worse(command, small):
    words = ("env", small, "--agent", "random", "--episodes", "8", "--json")
    first, second = command(*words), command(*words)
    assert first.out == second.out
    assert json.loads(first.out)["mean_total"] < 1.0


def test_a_script_is_played_turn_by_turn(command, small, transcripts):
    done = command("env", small, "--agent", "script", "--script", transcripts, "--json")
    told = json.loads(done.out)["episodes"]
    assert [(one["turns"], one["stop"], one["total"]) for one in told] == [
        (2, "answered", 1.0),
        (1, "answered", 0.0),
    ]


def test_env_shows_one_episode_in_full(command, small, tmp_path):
    done = command("env", small, "--episodes", "2")
    assert (done.code, done.err) == (0, "")
    check_snapshot("env", settled(done.out, tmp_path))


def test_a_script_needs_its_file_and_its_agent(command, small, transcripts):
    assert command("env", small, "--agent", "script").code == 2
    assert command("env", small, "--script", transcripts).code == 2


def test_an_unknown_stage_is_named(command, small, tmp_path):
    done = command("env", small, "--stage", "imitat")
    assert (done.code, done.out) == (2, "")
    check_snapshot("env_unknown_stage", settled(done.err, tmp_path))


def test_score_gives_every_transcript_its_parts_and_total(command, small, transcripts, tmp_path):
    told = json.loads(command("score", small, transcripts, "--json").out)["scores"]
    assert told == [
        {"id": "right", "parts": {"exact_match": 1.0}, "per_turn": [0.0, 1.0], "total": 1.0},
        {"id": "wrong", "parts": {"exact_match": 0.0}, "per_turn": [0.0], "total": 0.0},
    ]
    check_snapshot("score", settled(command("score", small, transcripts).out, tmp_path))


def test_a_transcript_without_a_total_says_what_it_may_lack(command, small, transcripts):
    words = ("rewards=[exact_match,length]", "--json")
    done = command("score", small, transcripts, *words)
    lines = [json.loads(line) for line in Path(transcripts).read_text().splitlines()]
    assert [one["total"] for one in json.loads(done.out)["scores"]] == [None, None]
    said = "no total. Rewards that count tokens need `tokens` in every turn of a transcript."
    assert done.err.splitlines() == [
        f"warning: {line['id']}: {reason}"
        for line in lines
        for reason in ("length could not be computed", said)
    ]
    for line in lines:
        line["turns"] = [{**turn, "tokens": 2} for turn in line["turns"]]
    Path("counted.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    counted = command("score", small, "counted.jsonl", *words)
    assert [one["total"] for one in json.loads(counted.out)["scores"]] == [1.0, 0.0]
    assert counted.err == ""


def test_broken_transcripts_are_named_line_by_line(command, small, tmp_path):
    Path("broken.jsonl").write_text('{"id": 1}\nnot json\n')
    done = command("score", small, "broken.jsonl")
    assert (done.code, done.out) == (2, "")
    check_snapshot("score_broken", settled(done.err, tmp_path))


def test_score_takes_a_recipe_and_a_file(command, small):
    assert command("score", small).code == 2
    assert command("score", small, "nowhere.jsonl").code == 2
