"""A conversation becomes the very tokens that the policy was trained to see."""

from __future__ import annotations

import asyncio

import pytest
from tests.serving.calculating import ANSWER, TWO_CALLS, agent, two_rounds

from agentrecipes.serving.conversation import BadConversation, prompt_of
from agentrecipes.serving.wire import ChatMessage, Function, FunctionTool, ToolCall

QUESTION = "What is 17 * 4, and what is 9 - 2?"


def said(role: str, content: str | None = None, **more: object) -> ChatMessage:
    return ChatMessage(role=role, content=content, **more)


def call(name, expression):
    arguments = f'{{"expression": "{expression}"}}'
    return ToolCall(id=name, function=Function(name="calculator", arguments=arguments))


CALLS = (call("a", "17 * 4"), call("b", "9 - 2"))
CALLED = said("assistant", tool_calls=CALLS, reasoning_content="both at once")
LISTED = said(
    "assistant", tool_calls=(ToolCall(id="a", function=Function(name="f", arguments="[1]")),)
)
RESULTS = (said("tool", "68", tool_call_id="a"), said("tool", "7", tool_call_id="b"))


def test_a_tool_loop_has_the_ids_of_an_episode():
    own = agent(two_rounds)
    played = asyncio.run(own.ask(QUESTION))
    found, sources = prompt_of(own, [said("user", QUESTION), CALLED, *RESULTS], ())
    # The episode's model ended its first message with the end token; a client does not send it.
    text = own.setting.chat.decode(played.turns[1].prompt)
    assert own.setting.chat.decode(found) == text
    assert played.turns[0].action_text == TWO_CALLS
    assert played.turns[1].action_text == ANSWER
    assert len(sources) == len(found)


def test_a_question_alone_is_posed_as_the_environment_poses_it():
    own = agent(two_rounds)
    found, _ = prompt_of(own, [said("user", QUESTION)], ())
    assert found == own.setting.chat.prompt(own.opening(QUESTION))[0]


def test_tools_of_the_caller_are_described_after_its_system_message():
    own = agent(two_rounds)
    tool = FunctionTool(function={"name": "lookup", "parameters": {"type": "object"}})
    found, _ = prompt_of(own, [said("system", "Be brief."), said("user", "Who?")], [tool])
    text = own.setting.chat.decode(found)
    assert text.index("Be brief.") < text.index('"name": "lookup"') < text.index("Who?")


def test_a_later_question_follows_a_closed_answer():
    own = agent(two_rounds)
    rounds = [said("user", "1 + 1?"), said("assistant", "2"), said("user", "And 2 + 2?")]
    text = own.setting.chat.decode(prompt_of(own, rounds, ())[0])
    assert "<answer> 2 </answer>" in text
    assert text.count("And 2 + 2?") == 1
    assert text.index("1 + 1?") < text.index("<answer>") < text.index("And 2 + 2?")


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ((CALLED,), "has no user message before it"),
        ((said("user", "?"), CALLED, RESULTS[0], said("user", "?")), "after an assistant's"),
        ((said("user", "?"), CALLED, said("tool", "5", tool_call_id="z")), "has the id 'z'"),
        ((said("user", "?"), LISTED, RESULTS[0]), "the arguments of the call 'a' are no JSON obj"),
    ],
)
def test_messages_that_make_no_episode_are_refused(messages, why):
    with pytest.raises(BadConversation, match=why):
        prompt_of(agent(two_rounds), messages, ())
