"""Calls as a Python list: only literals are read, and nothing is ever run."""

from __future__ import annotations

import pytest
from tests.protocols.malformed import NOBODY

from agentrecipes.protocols.pythonic import LONGEST, Pythonic
from agentrecipes.records import Action, Call, ToolResult

LISTS = Pythonic()
NOT_PLAIN = "an argument is no plain text, number, truth value, None, list or dict"
NO_LIST, NO_KEYWORD = "the calls are no Python list", "arguments are written name=value"
NOT_A_CALL = "the list holds something that is no call of a name"
WRONG = {
    "[f(a=1)": NO_LIST,
    "[f(a=1)] done": NO_LIST,
    "[f(a=1)]\n[g(a=1)]": NO_LIST,
    "[f(a=1)] + []": NO_LIST,
    "[f(a=1, a=2)]": NO_KEYWORD,
    "[f(1)]": NO_KEYWORD,
    "[f(*x)]": NO_KEYWORD,
    "[f(**x)]": NO_KEYWORD,
    "[f(a:=1)]": NO_KEYWORD,
    "[x for x in y]": NO_LIST,
    "[]": "the list holds no call",
    "[1, 2]": NOT_A_CALL,
    "[f]": NOT_A_CALL,
    "[f()()]": NOT_A_CALL,
    "[f[0](a=1)]": NOT_A_CALL,
    "[(lambda: 1)()]": NOT_A_CALL,
    "[f(a=g())]": NOT_PLAIN,
    "[f(a=__import__('os').getcwd())]": NOT_PLAIN,
    "[f(a=x)]": NOT_PLAIN,
    "[f(a=1 + 1)]": NOT_PLAIN,
    "[f(a=f'{x}')]": NOT_PLAIN,
    "[f(a=b'x')]": NOT_PLAIN,
    "[f(a={1, 2})]": NOT_PLAIN,
    "[f(a={1: 2})]": NOT_PLAIN,
    "[f(a={'b': 1, 'b': 2})]": NOT_PLAIN,
    "[f(a={**x})]": NOT_PLAIN,
    "[f(a=1j)]": NOT_PLAIN,
    "[f(a=-True)]": NOT_PLAIN,
    "[f(a=-'x')]": NOT_PLAIN,
    "[f(a=1e999)]": NOT_PLAIN,
    "[f(a=...)]": NOT_PLAIN,
    "[f(a='\\ud83d')]": NOT_PLAIN,
    "[f(a=0x" + "f" * 9999 + ")]": NOT_PLAIN,
    "[f(a=" + "9" * 9999 + ")]": NO_LIST,
    "[f(a=" + "-" * 9999 + "1)]": NO_LIST,
    "[f(a=x" + ".a" * 9000 + ")]": NO_LIST,
    "[f(a=" + "1+" * 9000 + "1)]": NO_LIST,
    "[f(a='" + "x" * LONGEST + "')]": NO_LIST,
    "[f(a=\x00)]": NO_LIST,
    "[f(a=1), g(a=2), h(a=3), i(a=4), j(a=5)]": "too many calls in one turn",
    "[f(a=1)] <answer> 4 </answer>": "calls and an answer do not go together",
    "f(a=1)": "no list of calls begins a line, and no answer was closed",
    "so: [f(a=1)]": "no list of calls begins a line, and no answer was closed",
}


@pytest.mark.parametrize(("text", "error"), WRONG.items())
def test_a_wrong_list_says_what_is_wrong(text, error):
    action = LISTS.parse(text)
    assert (action.calls, action.answer) == ((), None)
    assert (action.error or "").startswith(error)


@pytest.mark.parametrize("text", NOBODY)
def test_a_text_that_says_nothing_is_an_error(text):
    assert len({*NOBODY, *WRONG}) >= 80
    assert LISTS.parse(text).error


def test_a_list_is_written_as_python_writes_it():
    calls = (Call("f", {"a": 1, "b": "it's"}), Call("math.g", {"c": [None, True, {"d": -0.5}]}))
    written = "[f(a=1, b=\"it's\"), math.g(c=[None, True, {'d': -0.5}])]"
    assert LISTS.write(Action("t", calls)) == f"<think> t </think>\n{written}"
    assert LISTS.parse(written) == Action(calls=calls)


def test_a_list_may_take_several_lines_and_tuples_are_lists():
    text = "I ask:\n [\n  f(a=(1, 2)),  # both\n  g(),\n ]"
    assert LISTS.parse(text) == Action("I ask:", (Call("f", {"a": [1, 2]}), Call("g", {})))


def test_calls_above_the_limit_can_be_cut_off():
    cut = Pythonic(calls_per_turn=1, excess="truncate")
    assert cut.parse("[f(a=1), g(b=2)]").calls == (Call("f", {"a": 1}),)


def test_an_argument_may_speak_of_an_answer_and_an_answer_may_hold_a_list():
    said = '[f(a="<answer> is a tag")]'
    assert LISTS.parse(said).calls == (Call("f", {"a": "<answer> is a tag"}),)
    assert LISTS.parse("<answer>\n[1, 2]\n</answer>").answer == "[1, 2]"


def test_a_plain_message_is_the_answer_where_the_recipe_says_so():
    plain = Pythonic(answers="plain")
    assert plain.stop == ()
    assert plain.parse("<think> t </think> It is 4.") == Action("t", answer="It is 4.")
    assert plain.parse("[f(a=1").error == NO_LIST


def test_each_result_stands_under_the_name_of_its_call():
    results = [ToolResult(Call("f", {}), "4"), ToolResult(Call("g", {}), error="no <answer> here")]
    assert LISTS.render(results) == "f: 4\ng: error: no [answer] here"


def test_instructions_name_the_number_of_calls():
    assert "up to 4 calls" in LISTS.system(["f"])
    assert "up to" not in Pythonic(calls_per_turn=1).system(["f"])
