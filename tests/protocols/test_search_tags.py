"""The protocol of thoughts, searches and answers between tags."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrecipes.components import build
from agentrecipes.protocols.search_tags import SearchTags
from agentrecipes.records import Action, Call, Passage, ToolResult
from agentrecipes.testing.suites import ProtocolSuite

THREE = SearchTags(queries_per_turn=3)
ONE = SearchTags()
PIECES = ["<think>", "</think>", "<search>", "</search>", "<answer>", "</answer>", "<information>"]
PIECES += ["</information>", "[", "]", '"', "\n", "2. ", "3)", " ", "q", "é", "\\", ",", "<", ">"]
WORDS = st.text("abcxyzäßñ東京ªºاก019", min_size=1, max_size=6).filter(
    lambda word: not word[0].isnumeric()
)
PHRASES = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)


class TestOneQuery(ProtocolSuite):
    @pytest.fixture
    def protocol(self):
        return ONE


class TestThreeQueries(ProtocolSuite):
    @pytest.fixture
    def protocol(self):
        return THREE

    def actions(self):
        several = Action("next r s", searches("X 's r", "Y 's s", "Z 's u"))
        return [*super().actions(), several]


def searches(*queries: str):
    return tuple(Call("search", {"query": query}) for query in queries)


def test_one_word_is_one_piece_in_what_is_written():
    action = Action("next r s u", searches("X 's r", "Y 's s", "Z 's u"))
    assert THREE.write(action) == (
        "<think> next r s u </think> <search> X 's r\n2. Y 's s\n3. Z 's u </search>"
    )
    assert THREE.write(Action("done", answer="C and B plus A")) == (
        "<think> done </think> <answer> C and B plus A </answer>"
    )


def test_a_single_query_keeps_its_label_on_a_line_of_its_own():
    text = "<think> next s </think> <search>\n2. Y 's s </search>"
    action = Action("next s", (Call("search", {"query": "Y 's s", "slot": 2}),))
    assert ONE.write(action) == text
    assert ONE.parse(text) == action
    labelled = Action("next s", searches("2. Y 's s"))
    assert ONE.write(labelled) == text


def test_a_label_that_is_the_place_of_its_query_says_nothing():
    assert THREE.parse("<search> 1. a\n2) b\n3. c </search>").calls == searches("a", "b", "c")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "no search or answer was closed"),
        ("The answer is Paris.", "no search or answer was closed"),
        ("<search> q", "no search or answer was closed"),
        ("q </search>", "a tag was closed that was never opened"),
        ("<search> q </answer>", "a tag was closed that was never opened"),
        ("<search> a <search> b </search>", "tags are nested"),
        ("<answer> a <search> b </search>", "tags are nested"),
        ("<search> <think> t </think> <think> q </search>", "tags are nested"),
        ("<search> </search>", "the search is empty"),
        ("<search>\n\n  \n</search>", "the search is empty"),
        ("<search> [] </search>", "the search is empty"),
        ('<search> ["", " "] </search>', "the search is empty"),
        ("<answer>  </answer>", "the answer is empty"),
        ("<search> a\n2. b\n3. c\n4. d </search>", "too many queries"),
        (
            "<information> x </information> <answer> x </answer>",
            "only the environment writes information",
        ),
    ],
)
def test_an_unreadable_action_says_what_is_wrong(text, error):
    assert THREE.parse(text).error == error


def test_what_follows_the_first_closed_tag_is_not_there():
    action = THREE.parse("<search> q </search> <answer> a </answer> </search> <search>")
    assert (action.calls, action.answer, action.error) == (searches("q"), None, None)
    action = THREE.parse("<answer> a </answer> <search> q </search>")
    assert (action.calls, action.answer) == ((), "a")


def test_thoughts_are_read_leniently_and_may_speak_of_tags():
    said = "<think> I could <search> or not </think> <answer> a </answer>"
    assert THREE.parse(said) == Action("I could <search> or not", answer="a")
    assert THREE.parse("So: <answer> a </answer>") == Action("So:", answer="a")
    assert THREE.parse("<think> open <search> q </search>") == Action("open", searches("q"))


def test_a_json_list_of_strings_is_several_queries():
    assert THREE.parse('<search> ["a, b", "2. c"] </search>').calls == searches("a, b", "c")
    assert THREE.parse("<search> [1, 2] </search>").calls == searches("[1, 2]")


def test_a_comma_does_not_split_a_query():
    assert THREE.parse("<search> Paris, Texas </search>").calls == searches("Paris, Texas")


def test_queries_above_the_limit_can_be_cut_off():
    cut = SearchTags(queries_per_turn=2, excess="truncate")
    assert cut.parse("<search> a\n2. b\n3. c </search>").calls == searches("a", "b")


def test_results_stand_under_the_labels_of_their_queries():
    calls = searches("a", "b", "c")
    results = [ToolResult(call, f"found {n} .") for n, call in enumerate(calls)]
    assert THREE.render(results) == (
        "\n<information> found 0 .\n2. found 1 .\n3. found 2 . </information>\n"
    )
    alone = Call("search", {"query": "c", "slot": 3})
    assert ONE.render([ToolResult(alone, "found .")]) == (
        "\n<information>\n3. found . </information>\n"
    )
    assert ONE.render([ToolResult(calls[0])]) == "\n<information> </information>\n"


def test_passages_without_a_text_are_numbered_with_their_titles():
    passages = (Passage("1", "Rome", "Old."), Passage("2", "", "No title."))
    assert ONE.render([ToolResult(searches("q")[0], "", passages)]) == (
        "\n<information>\nDoc 1 (Title: Rome) Old.\nDoc 2 No title. </information>\n"
    )


def test_a_long_passage_is_cut_and_the_closing_tag_is_kept():
    protocol = SearchTags(passage_characters=10)
    long = ToolResult(searches("q")[0], "", (Passage("1", "", "abcdefghij" + "k" * 990),))
    assert protocol.render([long]) == "\n<information>\nDoc 1 abcdefghij … </information>\n"


def test_what_has_no_written_form_is_refused():
    for action in (Action(error="x"), Action("t"), Action("t", (Call("python", {"code": "1"}),))):
        with pytest.raises(ValueError, match="search_tags cannot write"):
            ONE.write(action)


def test_instructions_name_the_tags_and_the_number_of_queries():
    text = THREE.system(["search"])
    assert "up to 3 queries at once" in text
    assert "<search> query 1\n2. query 2\n3. query 3 </search>" in text
    assert "queries" not in ONE.system(["search"])


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.sampled_from([ONE, THREE]))
def test_any_mixture_of_tags_is_an_action(text, protocol):
    action = protocol.parse(text)
    assert action.valid == bool(action.calls or action.answer)
    assert len(action.calls) <= protocol.queries_per_turn


@given(PHRASES, st.lists(PHRASES, min_size=1, max_size=3))
def test_any_plain_action_is_read_back(thought, queries):
    action = Action(thought, searches(*queries))
    assert THREE.parse(THREE.write(action)) == action
    answer = Action(thought, answer=queries[0])
    assert ONE.parse(ONE.write(answer)) == answer


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_any_passage_leaves_one_closing_tag(text):
    shown = ONE.render([ToolResult(searches("q")[0], "", (Passage("1", text, text),))])
    assert shown.count("</information>") == shown.count("<information>") == 1
    assert "</search>" not in shown


def test_the_yaml_form_builds_the_protocol():
    assert build("protocol", {"name": "search_tags", "queries_per_turn": 3}) == THREE
