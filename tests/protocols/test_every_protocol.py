"""What holds for every protocol there is: the suite, the budgets, and texts that nobody meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrecipes.components import build, names
from agentrecipes.records import Action, Call, Passage, ToolResult
from agentrecipes.testing.suites import ProtocolSuite

OWN = ("action_tags", "code", "hermes", "pythonic", "react")
PLAIN = [{"name": name, "answers": "plain"} for name in ("code", "hermes", "pythonic")]
PIECES = [
    f"<{slash}{tag}>" for slash in ("", "/") for tag in ("think", "tool_call", "answer", "action")
]
PIECES += ["<tool_response>", "</tool_response>", "```python\n", "```\n", "\n```\n", "```json\n"]
PIECES += ["\nThought:", "\nAction:", "\nAction Input:", "\nObservation:", "\nFinal Answer:"]
PIECES += ['{"name": "f", "arguments": {"a": 1}}', '{"a": 1}', "{", "}", '"', "\\", "\n", " ", "f"]
PIECES += ["[f(a=1)]", "[", "]", "(", ")", "=", ",", "lambda:", "\x00", "\ud83d", "é", "1e999", "-"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
WORDS = st.text("abcxyzäßñ東京019", min_size=1, max_size=6)
PHRASES = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("ab1 \"'\\\n\t\x00{}[]()<>=:,/#é東🙂\u2028\x85", max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
ARGUMENTS = st.dictionaries(st.sampled_from(["a", "b", "query"]), VALUES, max_size=3)


class TestEveryProtocol(ProtocolSuite):
    @pytest.fixture(params=names("protocol"))
    def protocol(self, request):
        return build("protocol", request.param)


class TestPlainAnswers(ProtocolSuite):
    @pytest.fixture(params=PLAIN, ids=lambda fields: fields["name"])
    def protocol(self, request):
        return build("protocol", request.param)


def written(protocol, action):
    """The action as it is read back, or None where it has no written form."""
    try:
        text = protocol.write(action)
    except ValueError:
        return None
    return protocol.parse(text)


def test_the_protocols_that_the_documents_name_are_there():
    assert {*OWN, "search_tags"} <= set(names("protocol"))


@pytest.mark.parametrize("fields", [*OWN, *PLAIN], ids=str)
@given(text=TEXTS)
def test_any_mixture_of_pieces_is_an_action(fields, text):
    protocol = build("protocol", fields)
    action = protocol.parse(text)
    assert action.valid == bool(action.calls or action.answer)
    assert not (action.calls and action.answer)
    if action.valid and "\ud83d" not in text:  # a valid action has a form, or is refused
        assert written(protocol, action) in (None, action)


@pytest.mark.parametrize("name", ["hermes", "pythonic", "react"])
@given(thought=PHRASES, arguments=ARGUMENTS, answer=PHRASES)
def test_any_plain_action_is_read_back(name, thought, arguments, answer):
    protocol = build("protocol", name)
    for action in (Action(thought, (Call("f", arguments),)), Action(thought, answer=answer)):
        assert protocol.parse(protocol.write(action)) == action


@pytest.mark.parametrize(
    ("name", "marks"),
    [
        ("hermes", ("<tool_response>", "</tool_response>", "</tool_call>", "<answer>", "<think>")),
        ("react", ("\nObservation:", "\nAction:", "\nThought:", "\nFinal Answer:")),
        ("pythonic", ("<answer>", "</answer>", "<think>")),
        ("code", ("```", "</answer>", "<think>")),
        ("action_tags", ("<action>", "</action>", "</answer>", "<think>")),
    ],
)
@given(text=TEXTS)
def test_no_result_writes_a_tag_or_a_label_of_the_protocol(name, marks, text):
    protocol = build("protocol", name)
    call = Call("f", {})
    fair = protocol.render([ToolResult(call, "", (Passage("1", "t", "x"),))])
    shown = protocol.render([ToolResult(call, "", (Passage("1", text, text),))])
    for mark in marks:
        assert shown.count(mark) == fair.count(mark)


@pytest.mark.parametrize("name", OWN)
def test_a_long_result_is_cut_and_its_block_is_closed(name):
    protocol = build("protocol", {"name": name, "result_characters": 10})
    call = Call("f", {})
    whole = build("protocol", name).render([ToolResult(call, "abcdefghij …")])
    assert protocol.render([ToolResult(call, "abcdefghij" + "k" * 10_000_000)]) == whole
    fits = [ToolResult(call, "abcdefghij")]
    assert protocol.render(fits) == build("protocol", name).render(fits)


@pytest.mark.parametrize("name", OWN)
def test_an_error_is_shown_as_one_and_cut_too(name):
    protocol = build("protocol", {"name": name, "result_characters": 13})
    assert "error: no suc …" in protocol.render([ToolResult(Call("f", {}), error="no such tool")])


@pytest.mark.parametrize("fields", [*OWN, *PLAIN], ids=str)
def test_what_has_no_written_form_is_refused(fields):
    protocol = build("protocol", fields)
    both = Action("t", (Call("python", {"code": "1"}),) * 9)
    closing = Action("t </think>\nFinal Answer: u", answer="a")
    for action in (Action(error="x"), Action("t"), both, closing, Action("t", answer=" ")):
        with pytest.raises(ValueError, match="cannot write"):
            protocol.write(action)


@pytest.mark.parametrize("name", OWN)
def test_a_reason_is_part_of_the_hint(name):
    protocol = build("protocol", name)
    reason = protocol.parse("").error
    assert reason in protocol.hint(reason)
