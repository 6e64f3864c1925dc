"""The published values of every preset, through ``agentrecipes score``, exactly.

Each case is a transcript and the total that the paper's, or its code's, formula gives.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any

import pytest
from tests.judges.server import served

from agentrecipes.cli.main import main

RECIPE = """\
name: golden
model: tiny
environment: {name: search, dataset: {name: world, train: 20, dev: 10, test: 10}}
rewards: REWARDS
algorithm: grpo
iterations: 400
rollout: {tokens: 40000}
"""


def turn(action, observation=None, **more: object):
    return {"action": action, "observation": observation, **more}


@pytest.fixture
def total(scored):
    """The total of a transcript under some rewards, as the command tells it."""

    def told(rewards, turns, *, golds=("rome",), iteration=0, **task: object) -> float | None:
        return scored(rewards, turns, golds=golds, iteration=iteration, **task)["total"]

    return told


@pytest.fixture
def scored(tmp_path, capsys):
    """All that the command tells of a transcript under some rewards."""

    def told(rewards, turns, *, golds=("rome",), iteration=0, **task: object) -> dict[str, Any]:
        recipe, file = tmp_path / "golden.yaml", tmp_path / "one.jsonl"
        recipe.write_text(RECIPE.replace("REWARDS", rewards))
        task = {"question": "Where?", "golden_answers": list(golds), **task}
        file.write_text(json.dumps({"id": "one", "task": task, "turns": turns}))
        with pytest.raises(SystemExit) as end:
            main(["score", str(recipe), str(file), "--json", "--stage", f"@{iteration}"])
        said = capsys.readouterr()
        assert end.value.code == 0, said.err
        [score] = json.loads(said.out)["scores"]
        return score

    return told


def answer(text):
    return turn(f"<think> t </think> <answer> {text} </answer>")


@pytest.mark.parametrize(
    ("said", "gold"), [("The Eiffel-Tower!", "eiffeltower"), ("An apple", "apple")]
)
def test_exact_match_normalises_as_published(total, said, gold):
    assert total("search_r1_em", [answer(said)], golds=[gold]) == 1.0


SEEN = turn("<think> t </think> <search> q </search>", "Rome is old.")
BARE = turn("<search> q </search>", "nothing")  # no thought: a broken sequence
V03 = {
    "right, broken": ([BARE, answer("Rome")], 0.8),
    "wrong, valid, no hit": ([turn(SEEN["action"], "nothing"), answer("Paris")], 0.2),
    "wrong, broken, an answer": ([BARE, answer("Paris")], 0.1),
    "no answer, broken": ([BARE, turn("hm")], 0.0),
}


@pytest.mark.parametrize("case", V03)
def test_search_r1_v03(total, case):
    turns, expected = V03[case]
    assert total("search_r1_v03", turns) == expected


def test_search_r1_v03_with_a_reward_for_retrieval(total):
    # The preset's own note; wrong, valid and found: 0.2 + 0.1
    other = "[{name: constant, value: 0.2}, {name: retrieval_hit, weight: 0.1}]"
    right = f"{{name: gate, when: exact_match, then: [constant], else: {other}}}"
    rewards = f"[{{name: gate, when: format_tags, then: [{right}], else: 0}}]"
    assert total(rewards, [SEEN, answer("Paris")]) == pytest.approx(0.3, rel=0, abs=1e-15)


def test_search_r1_v03_without_an_answer_in_a_valid_sequence(total):
    # A reply alone never is such a sequence: the form is said to be right here.
    right = "{name: gate, when: exact_match, then: [constant], else: 0.2}"
    rewards = f"[{{name: gate, when: {{name: given, field: formed}}, then: [{right}], else: 0}}]"
    assert total(rewards, [turn("hm")], formed=1) == 0.2


CALL = "<think> t </think> <tool_call> {} </tool_call>"
AGENT_R1 = {
    "a good call, a good last block, a hit: -1 + 1 + 1": (
        [turn(CALL, "x"), turn("<think> t </think> so <answer> in Rome </answer>")],
        1.0,
    ),
    "the last block alone, wrong, gold elsewhere in it: -1 + 0.5 + 0.2": (
        [turn(f"{CALL} and more", "x"), turn("<think> Rome? </think> <answer> Paris </answer>")],
        -0.3,
    ),
    "no block well formed, right text: -1": (
        [turn("<tool_call> {} </tool_call>", "x"), turn("so <answer> Rome </answer>")],
        -1.0,
    ),
    "a good call, the last block malformed, wrong: -1 + 0.5": (
        [turn(CALL, "x"), turn("<think> t </think> <answer> Paris </answer> so")],
        -0.5,
    ),
    "three good calls are worth no more than one block beside them: -1 + 1": (
        [*[turn(CALL, "x")] * 3, turn("<think> t </think> <answer> Paris </answer>")],
        0.0,
    ),
    "a call with two thoughts is none: -1 + 0.5 + 1": (
        [turn(f"<think> a </think> {CALL}", "x"), answer("Rome")],
        0.5,
    ),
    "nothing": ([], -1.0),
}


@pytest.mark.parametrize("case", AGENT_R1)
def test_agent_r1_legacy(total, case):
    turns, expected = AGENT_R1[case]
    assert total("agent_r1_legacy", turns) == expected


SIX = "<reasoning> a </reasoning> <backtrack> b </backtrack> <summary> c </summary>"
SEARCH = "<search> q </search>"
POINTS = {
    "six tags, two searches, one answer: 1.2 + 0.4 + 0.4": (SIX + SEARCH * 2, 2.0),
    "six tags, three searches, one answer: 1.2 + 0.6 + 0.4": (SIX + SEARCH * 3, 2.2),
    "no optional tag, five searches, one answer: -0.4 + 0.4": (SEARCH * 5, 0.0),
    "nothing but the answer": ("", 0.4),
    "two answers": ("<answer> x </answer>", 0.0),
}


@pytest.mark.parametrize("case", POINTS)
def test_the_form_of_agentic_rag_r1(total, case):
    before, expected = POINTS[case]
    turns = [turn(before, "o"), turn("<answer> Rome </answer>")]
    assert total("[tag_points]", turns) == expected


BOXED = "<think> t </think> <answer> \\boxed{Rome Paris Oslo} </answer>"
PYTHON = turn("<think> t </think> <python> 1 </python>", "1")
LOOKED = turn("<think> t </think> <search> q </search>", "r")
ARPO = {
    # of three words one is right: precision 1/3, recall 1, F1 2 · 1/3 / (4/3) = 0.5
    "F1 0.5, both tools": ([LOOKED, PYTHON, turn(BOXED)], 0.6),
    "F1 0.5, one tool": ([LOOKED, turn(BOXED)], 0.5),
    "wrong, both tools": ([LOOKED, PYTHON, turn(BOXED.replace("Rome", "Bern"))], 0.0),
    "right, not boxed": ([LOOKED, PYTHON, answer("Rome")], -1.0),
    "a thought that is left open": ([turn("<think> t"), turn(BOXED)], -1.0),
    "a search that drew nothing": ([turn(LOOKED["action"]), turn(BOXED)], -1.0),
    "two answers": ([answer("\\boxed{Rome}"), turn(BOXED)], -1.0),
}


@pytest.mark.parametrize("case", ARPO)
def test_arpo(total, case):
    turns, expected = ARPO[case]
    assert total("arpo", turns) == expected


def match(findings, named):
    return turn(f"<think> t </think> <match> {findings} </match>", f"<refer> {named} </refer>")


GOLD = "one two three four five six seven eight"  # of which a search names one word
FOUND = match("a, b", "1. Asthma\n2. One two three four five six seven eight")
LOST = match("a, c, d", "Asthma")
SOUGHT = turn("<think> t </think> <search> eight, asthma </search>", "<result> x </result>")
BOLD = turn(f"<think> t </think> <answer> **{GOLD}** </answer>")
BLANK = turn("<think> t </think> <answer> **none** </answer>")
DEEP_DX = {
    "refer 1, search 1/8, answer 1: 0.8 + 0.05 · 0.5 + 0.15": ([FOUND, SOUGHT, BOLD], 0.975),
    # max(0, 1 - 0.5 - 0.5): the last fails, and {a, b} and {a} differ in b alone
    "hit, then a miss that hardly differs": ([FOUND, match("a", "Asthma"), BLANK], 0.0),
    "hit, then a miss: 0.8 · 0.5": ([FOUND, LOST, BLANK], 0.4),
    "three misses that differ: 0.8 · 0.4": (
        [match("a, b", "x"), match("c, d", "x"), match("e, f", "x"), BLANK],
        0.32,
    ),
    "two misses that differ: 0.8 · 0.2": ([match("a, b", "x"), match("c, d", "x"), BLANK], 0.16),
    "bad form: no look-up": ([SOUGHT, BOLD], 0.0),
    "bad form: nothing bold": ([FOUND, answer(GOLD)], 0.0),
}


@pytest.mark.parametrize("case", DEEP_DX)
def test_deep_dx(total, case):
    turns, expected = DEEP_DX[case]
    assert total("deep_dx", turns, golds=[GOLD]) == pytest.approx(expected, rel=0, abs=1e-15)


def test_a_search_that_names_more_than_ten_diseases_is_worth_nothing(total):
    many = turn(f"<think> t </think> <search> {', '.join('abcdefghijk')}, eight </search>", "r")
    assert total("deep_dx", [FOUND, many, BOLD], golds=[GOLD]) == pytest.approx(0.95)


@pytest.mark.parametrize(("said", "expected"), [("Rome", 1.0), ("Paris", 0.1)])
def test_m_grpo_of_the_main_agent(total, said, expected):
    assert total("m_grpo", [answer(said)]) == expected


def test_m_grpo_without_an_answer_is_nothing(total):
    assert total("m_grpo", [LOOKED]) == 0.0


def judged(heard, name, **more: object):
    judge = {"name": "openai", "model": "m", "base_url": heard.url}
    return json.dumps({"name": name, "judge": judge, **more})


def test_m_grpo_of_the_helper(total):
    # 0.1 form + 0.4 main agent right + 0.5 · 0.5 of the expert
    with served(lambda prompt: "Score: 5") as heard:
        rewards = judged(heard, "m_grpo_sub")
        assert total(rewards, [answer("Paris")], main_correct=True) == 0.75


@pytest.mark.parametrize(
    ("iteration", "expected"),
    # α 0.5, 0.25, 0 of a thought worth 0.2; F1 is 1
    [(0, 0.5 * 0.2 + 0.5), (100, 0.25 * 0.2 + 0.75), (200, 1.0), (399, 1.0)],
)
def test_atom_searcher_over_the_training(total, iteration, expected):
    with served(lambda prompt: "Score: 2") as heard:
        rewards = judged(heard, "atom_searcher")
        assert total(rewards, [answer("Rome")], iteration=iteration) == expected
        assert total(rewards, [turn("<answer> Rome </answer>")], iteration=iteration) == -1.0


@pytest.mark.parametrize(
    ("over", "iteration", "expected"), [(200, 100, 0.25), (50, 25, 0.25), (200, 0, 0.5)]
)
def test_spear_s_bonus_for_five_calls(total, over, iteration, expected):
    # min(1, 0.1 · 5) · ½(1 + cos(π t / T)), beside a wrong answer
    turns = [*[LOOKED] * 5, answer("Paris")]
    rewards = json.dumps({"name": "spear", "over": over})
    assert total(rewards, turns, iteration=iteration) == pytest.approx(expected, rel=0, abs=1e-15)


@pytest.mark.parametrize(("tokens", "expected"), [(16384, 0.0), (18432, -0.5), (20480, -1.0)])
def test_dapo_s_punishment_of_length(total, tokens, expected):
    turns = [turn("<think> t </think>", "o", tokens=384), turn("x", tokens=tokens - 384)]
    assert total("[{name: length, max: 20480, buffer: 4096}]", turns) == expected


def test_the_whole_of_agentic_rag_r1_with_a_judge_in_place_of_ragas(total):
    # 3 · yes + 2.2 of form + 2 · 1 of context
    with served(lambda prompt: "Verdict: yes") as heard:
        judge = {"name": "openai", "model": "m", "base_url": heard.url}
        asked = {"name": "judge", "judge": judge, "weight": 3.0}
        context = {**asked, "as": "context", "prompt": "{transcript}", "weight": 2.0}
        turns = [turn(SIX + SEARCH * 3, "o"), turn("<answer> Rome </answer>")]
        assert total(json.dumps([asked, "tag_points", context]), turns) == 7.2


@pytest.mark.ragas
@pytest.mark.skipif(find_spec("ragas") is None, reason="RAGAS is not installed")
@pytest.mark.filterwarnings("ignore")  # RAGAS' own, of what it imports
def test_the_whole_of_agentic_rag_r1_with_ragas(total):
    # the same, the context rated 2 of 2 twice
    def reply(prompt) -> str:
        return '{"rating": 2}' if "rating" in prompt else "Verdict: yes"

    with served(reply) as heard:
        turns = [turn(SIX + SEARCH * 3, "o"), turn("<answer> Rome </answer>")]
        assert total(judged(heard, "agentic_rag_r1"), turns) == 7.2


ERROR, FINE = "Traceback: NameError", "42"
RSTAR2 = {
    # 2 errors in 4 observations, (2 answers - 1) / 4 turns
    "errors and an extra answer": (
        [turn(f"{CALL} <answer> 1 </answer>", ERROR), turn(CALL, FINE), turn(CALL, "an error"),
         turn("<answer> 2 </answer>", FINE)],
        0.75,
    ),
    "no call, one answer": ([answer("Rome")], 0.5),
    "no call, no answer: 0.5 + 1": ([turn("hm")], 1.5),
    "no call, an answer that is left open: 0.5 + 1": ([turn("<answer> 1")], 1.5),
    "clean": ([turn(CALL, FINE), answer("Rome")], 0.0),
}  # fmt: skip


@pytest.mark.parametrize("case", RSTAR2)
def test_the_penalty_of_rstar2(total, case):
    turns, expected = RSTAR2[case]
    assert total("rstar2_penalty", turns) == expected


@pytest.mark.parametrize(
    ("solved", "expected"), [(0, 0.0), (0.25, 0.75), (0.5, 1.0), (0.75, 0.75), (1, 0.0)]
)
def test_ssp_pays_who_poses_questions_by_how_often_they_are_solved(total, solved, expected):
    # 4 (l + s) (r - s), l 0, r 1
    assert total("ssp_proposer", [answer("Rome")], solved=solved) == expected


@pytest.mark.parametrize(("said", "turns"), [("Rome", [0.6, 1.0]), ("Paris", [-0.4, 0.0])])
def test_renorm_of_ppr_agrees_with_the_outcome(scored, said, turns):
    # r_p 0.6 on the turn that finds it; r_p + r_o - 1 on each turn, the outcome on the last
    found = "{name: product, of: [{name: progress, of: gold}, {name: constant, value: 0.6}]}"
    rewards = f"[{{name: renorm, of: {found}, outcome: exact_match}}]"
    assert scored(rewards, [SEEN, answer(said)])["per_turn"] == turns
