"""JSON calls between tags: what is read, what is refused and why."""

from __future__ import annotations

import pytest
from tests.protocols.malformed import NOBODY

from agentrecipes.protocols.hermes import Hermes
from agentrecipes.records import Action, Call, ToolResult

ONE = Hermes()
TWO = Hermes(calls_per_turn=2)
PRICE = '<tool_call>\n{"name": "price", "arguments": {"item": "tea"}}\n</tool_call>'
COUNT = '<tool_call>\n{"name": "count", "arguments": {}}\n</tool_call>'
CALL, OTHER = Call("price", {"item": "tea"}), Call("count", {})
NO_JSON, UNPAIRED = "a tool call is no JSON object", "tags are not paired"
NO_NAME, NO_ARGUMENTS = "a tool call has no name", "a tool call has no object of arguments"
WRONG = {
    PRICE.replace("</tool_call>", ""): "no tool call or answer was closed",
    PRICE.replace("<tool_call>", ""): UNPAIRED,
    PRICE.replace('"}}', '"}'): NO_JSON,
    PRICE.replace('"name"', "name"): NO_JSON,
    PRICE.replace('"', "'"): NO_JSON,
    PRICE.replace("{}", "{}{}").replace("}}", "}} x"): NO_JSON,
    '<tool_call>[{"name": "f", "arguments": {}}]</tool_call>': NO_JSON,
    '<tool_call>{"name": "f", "name": "g", "arguments": {}}</tool_call>': NO_JSON,
    '<tool_call>{"name": "f", "arguments": {"a": 1, "a": 2}}</tool_call>': NO_JSON,
    '<tool_call>{"name": "f", "arguments": {"a": NaN}}</tool_call>': NO_JSON,
    '<tool_call>{"name": "f", "arguments": {"a": 1e999}}</tool_call>': NO_JSON,
    '<tool_call>{"name": "f", "arguments": {"a": "\\ud83d"}}</tool_call>': NO_JSON,
    f'<tool_call>{{"name": "f", "arguments": {{"a": {"9" * 9999}}}}}</tool_call>': NO_JSON,
    f'<tool_call>{{"name": "f", "arguments": {"[" * 9999}</tool_call>': NO_JSON,
    '<tool_call>{"arguments": {}}</tool_call>': NO_NAME,
    '<tool_call>{"name": 3, "arguments": {}}</tool_call>': NO_NAME,
    '<tool_call>{"name": " ", "arguments": {}}</tool_call>': NO_NAME,
    '<tool_call>{"name": "f"}</tool_call>': NO_ARGUMENTS,
    '<tool_call>{"name": "f", "arguments": "q"}</tool_call>': NO_ARGUMENTS,
    '<tool_call>{"name": "f", "arguments": [1]}</tool_call>': NO_ARGUMENTS,
    '<tool_call>{"name": "f", "arguments": null}</tool_call>': NO_ARGUMENTS,
    f"<tool_response> 4 </tool_response> {PRICE}": "only the environment writes results",
    f"<answer> {PRICE}": UNPAIRED,
}


@pytest.mark.parametrize(("text", "error"), WRONG.items())
def test_a_wrong_call_says_what_is_wrong(text, error):
    assert ONE.parse(text) == Action(thought=ONE.parse(text).thought, error=error)


@pytest.mark.parametrize("text", NOBODY)
def test_a_text_that_says_nothing_is_an_error(text):
    assert len({*NOBODY, *WRONG}) >= 60
    action = TWO.parse(text)
    assert (action.calls, action.answer, bool(action.error)) == ((), None, True)


def test_a_call_is_written_as_the_templates_of_qwen_write_it():
    action = Action("ask", (CALL,))
    assert ONE.write(action) == f"<think> ask </think>\n{PRICE}"
    assert TWO.write(Action(calls=(CALL, OTHER))) == f"{PRICE}\n{COUNT}"
    assert ONE.write(Action(answer="4 €")) == "<answer> 4 € </answer>"


def test_with_one_call_a_turn_nothing_after_it_is_read():
    assert ONE.stop == ("</tool_call>", "</answer>")
    assert ONE.parse(f"{PRICE}\n{COUNT} <answer> a </answer>") == Action(calls=(CALL,))


def test_with_several_calls_a_turn_they_are_read_in_their_order():
    assert TWO.stop == ("</answer>",)
    assert TWO.parse(f"Both: {PRICE} and {COUNT} .") == Action("Both:", (CALL, OTHER))


def test_one_bad_call_spoils_its_turn():
    bad = COUNT.replace("{}", "3")
    assert TWO.parse(PRICE + bad) == Action(error="a tool call has no object of arguments")


def test_too_many_calls_are_refused_or_cut_off():
    three = f"{PRICE}{COUNT}{PRICE}"
    assert TWO.parse(three) == Action(error="too many calls in one turn")
    cut = Hermes(calls_per_turn=2, excess="truncate")
    assert cut.parse(three) == Action(calls=(CALL, OTHER))


def test_a_call_beside_an_answer_is_an_error():
    said = "calls and an answer do not go together"
    assert TWO.parse(f"{PRICE} <answer> a </answer>").error == said


def test_a_thought_may_speak_of_tags_and_lack_its_opening():
    assert ONE.parse(f"<think> a <tool_call> or not </think> {PRICE}").thought == (
        "a <tool_call> or not"
    )
    assert ONE.parse(f"I ask </think>\n{PRICE}") == Action("I ask", (CALL,))
    assert ONE.parse(f"<think> never closed {PRICE}") == Action("never closed", (CALL,))


def test_a_plain_message_is_the_answer_where_the_recipe_says_so():
    plain = Hermes(answers="plain")
    assert plain.parse("<think> t </think> It is 4.") == Action("t", answer="It is 4.")
    assert plain.parse(PRICE) == Action(calls=(CALL,))
    assert plain.parse("<think> t </think> ").error == "no tool call or answer was closed"
    assert plain.parse("<tool_call> {").error == "no tool call or answer was closed"


def test_results_stand_in_blocks_like_those_of_qwen():
    results = [ToolResult(CALL, "4 €"), ToolResult(OTHER, error="no such tool")]
    assert TWO.render(results) == (
        "<tool_response>\n4 €\n</tool_response>\n"
        "<tool_response>\nerror: no such tool\n</tool_response>"
    )


def test_instructions_hold_each_tool_as_a_line_of_json():
    schema = {"name": "price", "description": "d", "parameters": {"type": "object"}}
    lines = TWO.system([schema, "count"]).splitlines()
    first, second = lines[lines.index("<tools>") + 1 : lines.index("</tools>")]
    assert first == (
        '{"type": "function", "function": '
        '{"name": "price", "description": "d", "parameters": {"type": "object"}}}'
    )
    assert second == '{"type": "function", "function": {"name": "count"}}'
    assert "up to 2 times a turn" in TWO.system([])
