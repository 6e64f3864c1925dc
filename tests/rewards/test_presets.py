"""The shipped reward presets have the published values, and recipes can hold any combination."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.rewards.views import played

from agentrecipes.cli.main import main
from agentrecipes.components import build
from agentrecipes.recipe.load import check, load
from agentrecipes.recipe.presets import presets
from agentrecipes.recipe.schema import RewardEntry
from agentrecipes.rollout.score import read_transcripts, score_view

RECIPE = """\
name: small
model: tiny
environment: {name: search, dataset: {name: world, train: 20, dev: 10, test: 10}}
rewards: REWARDS
algorithm: grpo
iterations: 100
"""
THOUGHT = "<think> t </think> "
SEARCH = {"action": THOUGHT + "<search> q </search>", "observation": "Rome is old."}
BARE_SEARCH = {"action": "<search> q </search>", "observation": "Rome is old."}
RIGHT = {"action": THOUGHT + "<answer> The Rome! </answer>", "observation": None}
WRONG = {"action": THOUGHT + "<answer> Paris </answer>", "observation": None}
SILENT = {"action": THOUGHT + "hm", "observation": None}
TASK = {"question": "Where?", "golden_answers": ["rome"]}
CASES = {  # transcript → exact match, and Search-R1 v0.3
    "right, valid": ([SEARCH, RIGHT], 1.0, 1.0),
    "right, invalid": ([BARE_SEARCH, RIGHT], 1.0, 0.8),
    "wrong, valid": ([SEARCH, WRONG], 0.0, 0.2),
    "wrong, invalid": ([BARE_SEARCH, WRONG], 0.0, 0.1),
    "no answer": ([SEARCH, SILENT], 0.0, 0.0),
    "nothing": ([], 0.0, 0.0),
}
WITH_RETRIEVAL = """
  - name: gate
    when: format_tags
    then:
      - name: gate
        when: exact_match
        then: [constant]
        else: [{name: constant, value: 0.2}, {name: retrieval_hit, weight: 0.1}]
    else: 0
"""


@pytest.fixture
def write(tmp_path):
    """A recipe file with these rewards."""

    def to_file(rewards: str) -> Path:
        path = tmp_path / "small.yaml"
        path.write_text(RECIPE.replace("REWARDS", rewards))
        return path

    return to_file


def totals(recipe, cases=CASES):
    """Case → total, as `score` gives it."""
    [stage] = recipe.stages
    lines = [{"id": name, "task": TASK, "turns": turns} for name, (turns, *_) in cases.items()]
    found = read_transcripts(lines, stage.environment)
    return {name: score_view(view, stage.rewards).total for name, view in found}


@pytest.mark.parametrize(
    ("preset", "column"), [("search_r1_em", 1), ("rag_r1", 1), ("search_r1_v03", 2)]
)
def test_a_preset_has_the_published_values(write, preset, column):
    assert totals(load(write(preset))) == {name: case[column] for name, case in CASES.items()}


def test_with_a_reward_for_retrieval_a_hit_counts_only_beside_a_valid_wrong_answer(write):
    told = totals(load(write(WITH_RETRIEVAL)))
    # 0.2 + 0.1 · 1
    assert told["wrong, valid"] == pytest.approx(0.3)
    assert (told["right, valid"], told["wrong, invalid"], told["no answer"]) == (1.0, 0.0, 0.0)


def test_no_answer_in_a_valid_sequence_is_worth_the_form_alone(write):
    # A reply alone never is such a sequence, so that the form is said to be right here.
    [entry] = load(write("search_r1_v03")).stages[0].rewards
    formed = entry.part.model_copy(update={"when": build("reward", "constant")})
    assert score_view(played(("hm", "", ())), [RewardEntry(part=formed)]).total == 0.2


def test_every_preset_is_a_recipe_s_rewards_without_a_problem(write):
    assert set(presets()) >= {"search_r1_em", "rag_r1", "search_r1_v03"}
    for preset in presets():
        recipe, problems = check(write(preset))
        assert recipe is not None
        assert problems == []


def test_the_command_scores_written_transcripts_with_a_preset(write, tmp_path, capsys):
    lines = [{"id": n, "task": TASK, "turns": turns} for n, (turns, *_) in CASES.items()]
    lines.append({"id": "unknown", "task": {"question": "?"}, "turns": [SEARCH, RIGHT]})
    file = tmp_path / "all.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(SystemExit) as end:
        main(["score", str(write("search_r1_v03")), str(file), "--json"])
    said = capsys.readouterr()
    told = {each["id"]: each for each in json.loads(said.out)["scores"]}
    assert end.value.code == 0
    assert told["right, invalid"]["parts"] == {"search_r1_v03": 0.8}
    assert told["right, invalid"]["per_turn"] == [0.0, 0.8]
    assert told["unknown"]["total"] is None
    assert "exact_match could not be computed" in said.err


def test_a_share_follows_a_schedule_whose_every_value_is_checked(write):
    mix = "[{{name: mix, of: format_valid, rest: exact_match, share: {}}}]"
    recipe = load(write(mix.format("{schedule: linear, from: 0.5, to: 0, over: 50}")))
    shares = [recipe.stage(0, iteration).rewards[0].part.share for iteration in (0, 25, 80)]
    assert shares == [0.5, 0.25, 0.0]
    _, [problem] = check(write(mix.format("{schedule: linear, from: 0.5, to: 2, over: 50}")))
    assert (problem.code, problem.path) == ("out_of_range", "rewards[0].share")


def test_rewards_in_rewards_are_written_out_and_read_back(write, tmp_path):
    for rewards in ("search_r1_v03", WITH_RETRIEVAL):
        recipe = load(write(rewards))
        again = tmp_path / "again.yaml"
        again.write_text(recipe.to_yaml())
        assert load(again) == recipe
        assert load(again).stages == recipe.stages


def test_two_gates_are_told_apart_by_what_they_are_called(write):
    gate = "{name: gate, when: format_tags, then: [exact_match], else: 0}"
    named = gate.replace("gate,", "gate, as: strict,", 1)
    _, [problem] = check(write(f"[{gate}, {gate}]"))
    assert (problem.code, problem.path) == ("duplicate_name", "rewards[1]")
    [stage] = load(write(f"[{gate}, {named}]")).stages
    assert [entry.label for entry in stage.rewards] == ["gate", "strict"]


def test_the_page_on_rewards_shows_a_recipe_that_is_right_and_every_preset(write):
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "rewards.md").read_text("utf-8")
    [block] = re.findall(r"```yaml\nrewards:\n(.*?)```", page, re.DOTALL)
    recipe, problems = check(write(f"\n{block}"))
    assert problems == []
    [stage] = recipe.stages
    assert [entry.label for entry in stage.rewards] == ["gate", "length", "tool_bonus", "lookups"]
    assert all(f"`{preset}`" in page for preset in presets())


def test_a_length_is_no_problem_of_a_stage_that_scores_nothing(write):
    path = write("[exact_match, {name: length, max: 4096, buffer: 1024}]")
    stages = """\
stages:
  - {name: imitate, algorithm: sft, demonstrations: scripted, steps: 10}
  - {name: reinforce, algorithm: grpo, iterations: 10, rollout: ROLLOUT}
"""
    one = path.read_text().partition("algorithm")[0]
    found = []
    for tokens in ("8192", "2048"):
        path.write_text(
            one + stages.replace("ROLLOUT", f"{{tokens: {tokens}, tokens_per_turn: 1024}}")
        )
        found.append([(problem.code, problem.path) for problem in check(path)[1]])
    assert found == [[], [("no_effect", "rewards[1].max")]]


def test_a_gate_may_begin_open_and_close_by_and_by(write):
    gate = "{name: gate, when: format_valid, at_least: SCHEDULE, else: 0, then: [exact_match]}"
    for schedule in (
        "{schedule: linear, from: 0.0, to: 1.0, over: 50}",
        "{schedule: steps, values: [0.0, 0.5, 0.9], every: 30}",
    ):
        assert check(write(f"[{gate.replace('SCHEDULE', schedule)}]"))[1] == []
    late = "{schedule: steps, values: [0.0, 0.5, 1.5], every: 30}"
    _, [problem] = check(write(f"[{gate.replace('SCHEDULE', late)}]"))
    assert (problem.code, problem.path) == ("contradiction", "rewards[0].at_least")
    assert "at_least is 1.5" in problem.message
