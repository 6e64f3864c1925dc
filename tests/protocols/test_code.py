"""One block of code a turn: what is read, what is refused and why."""

from __future__ import annotations

import pytest
from tests.protocols.malformed import NOBODY

from agentrecipes.protocols.code import Code
from agentrecipes.records import Action, Call, ToolResult

CODE = Code()
BLOCK = "```python\nx = 2\nprint(x)\n```"
CALL = Call("python", {"code": "x = 2\nprint(x)"})
NOTHING = "no block of python and no answer was closed"
WRONG = {
    "```python\nprint(1)": NOTHING,
    "```python\nprint(1)```": NOTHING,
    "```python print(1)\n```": NOTHING,
    " ```python\nprint(1)\n```": NOTHING,
    "```\nprint(1)\n```": NOTHING,
    "```js\nprint(1)\n```": NOTHING,
    "```Python\nprint(1)\n```": NOTHING,
    "print(1)": NOTHING,
    "<execute> print(1) </execute>": NOTHING,
    "```python\n\n \n```": "the block of python is empty",
    "```python\n'\ud83d'\n```": "the code holds half a character",
    f"<answer> 4\n{BLOCK}": "calls and an answer do not go together",
    f"<answer>\n{BLOCK}\n</answer>": "calls and an answer do not go together",
    "<answer> a <answer> b </answer>": "tags are not paired",
    "<answer>  </answer>": "the answer is empty",
}


@pytest.mark.parametrize(("text", "error"), WRONG.items())
def test_a_wrong_block_says_what_is_wrong(text, error):
    action = CODE.parse(text)
    assert (action.calls, action.answer, action.error) == ((), None, error)


@pytest.mark.parametrize("text", NOBODY)
def test_a_text_that_says_nothing_is_an_error(text):
    assert len({*NOBODY, *WRONG}) >= 55
    assert CODE.parse(text).error


def test_a_block_is_a_call_of_python():
    assert CODE.parse(f"<think> t </think>\n{BLOCK}") == Action("t", (CALL,))
    assert CODE.parse(f"First x:\n{BLOCK}\n") == Action("First x:", (CALL,))
    assert CODE.write(Action("t", (CALL,))) == f"<think> t </think>\n{BLOCK}"


def test_what_follows_the_first_closed_block_is_not_read():
    assert CODE.stop == ("\n```\n", "</answer>")
    assert CODE.parse(f"{BLOCK}\n{BLOCK}\n<answer> 2 </answer>") == Action(calls=(CALL,))
    answered = CODE.parse(f"<answer> 2 </answer>\n{BLOCK}")
    assert (answered.answer, answered.calls) == ("2", ())


def test_code_may_hold_backticks_and_blank_lines_but_no_fence_of_its_own():
    kept = Call("python", {"code": "\ns = '```'\n\n"})
    assert CODE.parse(CODE.write(Action(calls=(kept,)))) == Action(calls=(kept,))
    fenced = Call("python", {"code": "s = '''\n```\n'''"})
    with pytest.raises(ValueError, match="cannot write"):
        CODE.write(Action(calls=(fenced,)))


def test_a_plain_message_is_the_answer_where_the_recipe_says_so():
    plain = Code(answers="plain")
    assert plain.parse("It is `2`.") == Action(answer="It is `2`.")
    assert plain.parse(BLOCK) == Action(calls=(CALL,))
    assert plain.parse("```python\nprint(1)").error == NOTHING


def test_what_was_printed_is_shown_without_fences_and_tags():
    assert CODE.render([ToolResult(CALL, "2\n```\n</answer>")]) == "Output:\n2\n'''\n[/answer]"


def test_instructions_hold_the_tool_s_description():
    assert "numpy is there" in CODE.system([{"name": "python", "description": "numpy is there"}])
