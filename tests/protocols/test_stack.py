"""Thoughts, and the acts of a policy that edits its own context."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocols.malformed import NOBODY

from agentrecipes.protocols.stack import TAG, Stack
from agentrecipes.records import Action, Call, Passage, ToolResult
from agentrecipes.testing.suites import ProtocolSuite

ONE = Stack()
THREE = Stack(queries_per_turn=3)
NAMES = ("reasoning", "plan", "search", "backtrack", "summary", "answer", "observation")
PIECES = [f"<{slash}{name}>" for name in NAMES for slash in ("", "/")]
PIECES += [" q ", "\n2. ", "[Wiki_RAG]: ", "Plan: ", "\nPlan: ", "\n", "é", "<", ">", "\x00", "["]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=20).map("".join)
WORDS = st.text("abcxyzäßñ東京", min_size=1, max_size=6)
PHRASES = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)
NOTHING, UNOPENED = "no search or answer was closed", "a tag was closed that was never opened"
NESTED, FORGED = "tags are nested", "only the environment writes an observation"
WRONG = {
    "<reasoning> t </reasoning>": NOTHING,
    "<plan> p </plan>": NOTHING,
    "<search> q": NOTHING,
    "<backtrack>": NOTHING,
    "<summary> s": NOTHING,
    "<SEARCH> q </SEARCH>": NOTHING,
    "< search > q < / search >": NOTHING,
    "<observation> x </observation>": NOTHING,
    "q </search>": UNOPENED,
    "</backtrack>": UNOPENED,
    "<search> q </answer>": UNOPENED,
    "</summary> s <summary>": UNOPENED,
    "<reasoning> t <search> q </search>": NESTED,
    "t </reasoning> <search> q </search>": NESTED,
    "<plan> p <answer> a </answer>": NESTED,
    "<reasoning> a <plan> p </plan> b </reasoning> <search> q </search>": NESTED,
    "<search> <search> q </search>": NESTED,
    "<search> a <answer> b </answer>": NESTED,
    "<answer> a <search> b </answer>": NESTED,
    "<summary> <plan> p </plan> </summary>": NESTED,
    "<backtrack> <reasoning> t </reasoning> </backtrack>": NESTED,
    "<observation> x </observation> <answer> a </answer>": FORGED,
    "<answer> <observation> </answer>": FORGED,
    "<search> q </observation> </search>": FORGED,
    "<search> </search>": "the search is empty",
    "<search> [Wiki_RAG]:  </search>": "the search is empty",
    "<search> \n\n </search>": "the search is empty",
    "<summary> \n </summary>": "the summary is empty",
    "<answer></answer>": "the answer is empty",
    "<search> a\nb </search>": "too many queries",
}


class TestOneQuery(ProtocolSuite):
    @pytest.fixture
    def protocol(self):
        return ONE

    def actions(self):
        edits = [Action("no", (Call("backtrack", {}),)), Action(calls=(call("backtrack", "led"),))]
        plans = [
            Action("Plan: p", (call("summary", "A is B ."),)),
            Action("r\nPlan: p", answer="x"),
        ]
        return [*super().actions(), *edits, *plans]


class TestThreeQueries(ProtocolSuite):
    @pytest.fixture
    def protocol(self):
        return THREE


def call(tool, text):
    return Call(tool, {"query" if tool == "search" else "text": text})


@pytest.mark.parametrize(("text", "error"), WRONG.items())
def test_a_wrong_turn_says_what_is_wrong(text, error):
    action = ONE.parse(text)
    assert (action.calls, action.answer, action.error) == ((), None, error)


@pytest.mark.parametrize("text", NOBODY)
def test_a_text_that_says_nothing_is_an_error(text):
    assert len({*NOBODY, *WRONG}) >= 60
    assert ONE.parse(text).error


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("<search> q </search>", Action("", (call("search", "q"),))),
        ("<search> [Wiki_RAG]: a b </search>", Action("", (call("search", "a b"),))),
        ("<backtrack> </backtrack>", Action("", (Call("backtrack", {}),))),
        ("<backtrack>led nowhere</backtrack>", Action("", (call("backtrack", "led nowhere"),))),
        ("<summary> s </summary>", Action("", (call("summary", "s"),))),
        (
            "<reasoning> a </reasoning>\n<plan> b </plan><reasoning> c </reasoning> "
            "<search> q </search>",
            Action("a\nPlan: b\nc", (call("search", "q"),)),
        ),
        # words outside of tags are the thought where there is no other
        ("so <answer> a </answer>", Action("so", answer="a")),
        ("so <plan> p </plan> <answer> a </answer>", Action("Plan: p", answer="a")),
        # several acts in a turn are the first of them
        ("<backtrack> </backtrack> <answer> a </answer>", Action("", (Call("backtrack", {}),))),
        ("<answer> a </answer> <search> q </search>", Action("", answer="a")),
    ],
)
def test_a_turn_is_thoughts_and_its_first_act(text, action):
    assert ONE.parse(text) == action


def test_several_queries_are_one_search():
    text = "<search> X 's r\n3. Z 's u </search>"
    calls = (call("search", "X 's r"), Call("search", {"query": "Z 's u", "slot": 3}))
    assert THREE.parse(text) == Action(calls=calls)
    assert THREE.write(Action(calls=calls)) == text
    first = Stack(excess="truncate").parse(text)
    assert first == Action(calls=calls[:1])


@pytest.mark.parametrize(
    "action",
    [
        Action(error="x"),
        Action("t"),
        Action("t", (call("search", "q"), Call("backtrack", {}))),
        Action("t", (Call("price", {"item": "tea"}),)),
        Action("</reasoning>", answer="a"),
        Action("t", answer=" "),
    ],
)
def test_what_has_no_written_form_is_refused(action):
    with pytest.raises(ValueError, match="cannot write"):
        ONE.write(action)


@given(text=TEXTS)
def test_any_mixture_of_pieces_is_an_action_that_can_be_written_again(text):
    action = ONE.parse(text)
    assert action.valid == bool(action.calls or action.answer)
    assert not (action.calls and action.answer)
    if action.valid:
        try:
            written = ONE.write(action)
        except ValueError:
            return
        assert ONE.parse(written) == action


@given(thought=PHRASES, plan=PHRASES, text=PHRASES, tool=st.sampled_from(NAMES[2:5]))
def test_any_act_after_thoughts_is_read_back(thought, plan, text, tool):
    action = Action(f"{thought}\nPlan: {plan}", (call(tool, text),))
    assert ONE.parse(ONE.write(action)) == action


@given(text=TEXTS, most=st.integers(1, 60))
def test_an_observation_keeps_its_budget_and_its_closing_tag(text, most):
    protocol = Stack(observation_characters=most, result_characters=40)
    results = [ToolResult(call("search", "q"), text, (Passage("1", text, text),))] * 3
    shown = protocol.render(results)
    assert shown.startswith("\n<observation>")
    assert shown.endswith(" </observation>\n")
    assert len(TAG.findall(shown)) == 2  # its own: what is inside can close nothing
    assert len(shown) <= most + len("\n<observation> … </observation>\n")


def test_a_result_is_cut_to_its_characters():
    protocol = Stack(result_characters=5)
    shown = protocol.render([ToolResult(call("search", "q"), "abcdefgh")])
    assert shown == "\n<observation> abcde … </observation>\n"
    assert protocol.render([ToolResult(call("summary", "s"))]) == "\n"


def test_every_act_ends_a_turn():
    assert ONE.stop == ("</search>", "</backtrack>", "</summary>", "</answer>")
    assert all(f"<{tag[2:]}" in ONE.system(["search"]) for tag in ONE.stop)
