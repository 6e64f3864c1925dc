"""The official ``openai`` client against a real server on loopback."""

from __future__ import annotations

import asyncio
import json
import threading

import httpx
import openai
import pytest
from tests.serving.calculating import ANSWER, CHAT, TWO_CALLS, agent, client, served

from agentrecipes.engines.protocol import Request
from agentrecipes.serving.server import Desk, Limits

QUESTION = {"role": "user", "content": "What is 17 * 4, and what is 9 - 2?"}
TOOL = {
    "type": "function",
    "function": {
        "name": "calculator",
        "description": "Works out an expression.",
        "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}},
    },
}


def gathered(stream):
    """A stream's pieces put together: content, reasoning, calls by index, why it ended."""
    content, reasoning, calls, finish = "", "", {}, None
    for chunk in stream:
        for choice in chunk.choices:
            delta = choice.delta
            content += delta.content or ""
            reasoning += getattr(delta, "reasoning_content", None) or ""
            for piece in delta.tool_calls or ():
                known = calls.setdefault(piece.index, {"id": "", "name": "", "arguments": ""})
                known["id"] += piece.id or ""
                known["name"] += piece.function.name or ""
                known["arguments"] += piece.function.arguments or ""
            finish = choice.finish_reason or finish
    return content, reasoning, calls, finish


def test_a_streaming_chat_with_two_tool_calls():
    with client() as opened:
        messages = [QUESTION]
        asked = {"model": "calc-1", "tools": [TOOL], "stream": True}
        first = gathered(opened.chat.completions.create(messages=messages, **asked))
        content, reasoning, calls, finish = first
        assert (content, reasoning, finish) == ("", "both at once", "tool_calls")
        expressions = [json.loads(calls[index]["arguments"])["expression"] for index in (0, 1)]
        assert expressions == ["17 * 4", "9 - 2"]
        made = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": call["arguments"]},
            }
            for call in calls.values()
        ]
        messages.append({"role": "assistant", "content": None, "tool_calls": made})
        for call, result in zip(made, ("68", "7"), strict=True):
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        content, reasoning, calls, finish = gathered(
            opened.chat.completions.create(messages=messages, **asked)
        )
    assert (content, reasoning, calls, finish) == ("68 and 7", "read off", {}, "stop")


def test_without_tools_of_the_caller_the_agent_works_with_its_own():
    with client() as opened:
        found = opened.chat.completions.create(model="calc-1", messages=[QUESTION])
        streamed = gathered(
            opened.chat.completions.create(model="calc-1", messages=[QUESTION], stream=True)
        )
    [choice] = found.choices
    assert (choice.message.content, choice.finish_reason) == ("68 and 7", "stop")
    content, reasoning, _, finish = streamed
    assert (content, finish) == ("68 and 7", "stop")
    assert TWO_CALLS in reasoning
    assert "<tool_response>\n68\n</tool_response>" in reasoning  # the calculator was asked


def test_tokens_are_counted():
    with client() as opened:
        asked = {"model": "calc-1", "messages": [QUESTION], "tools": [TOOL]}
        found = opened.chat.completions.create(**asked)
        *_, last = opened.chat.completions.create(
            **asked, stream=True, stream_options={"include_usage": True}
        )
    wanted = len(CHAT.action(TWO_CALLS, close=True))
    assert found.usage.completion_tokens == wanted
    assert found.usage.total_tokens == found.usage.prompt_tokens + wanted
    assert last.usage == found.usage


def test_the_models_list_has_the_run():
    with client() as opened:
        assert [model.id for model in opened.models.list()] == ["calc-1"]


def test_a_hundred_at_once_and_none_is_lost():
    def answer(request: Request) -> str:
        number = CHAT.decode(request.ids).split("number ")[1].split("?")[0]
        return f"<answer> {number} </answer>"

    with client(answer) as opened:
        address, found = str(opened.base_url), {}

        async def ask(own: openai.AsyncOpenAI, number: int) -> None:
            question = {"role": "user", "content": f"number {number}?"}
            stream = number % 2 == 0
            made = await own.chat.completions.create(
                model="calc-1", messages=[question], stream=stream
            )
            if stream:
                said = [c.choices[0].delta.content or "" async for c in made if c.choices]
                found[number] = "".join(said)
            else:
                found[number] = made.choices[0].message.content

        async def everybody() -> None:
            async with openai.AsyncOpenAI(base_url=address, api_key="x", max_retries=0) as own:
                await asyncio.gather(*(ask(own, number) for number in range(100)))

        asyncio.run(everybody())
    assert found == {number: str(number) for number in range(100)}


def test_the_key_is_asked_for():
    with client(limits=Limits(key="right"), key="wrong") as opened:
        with pytest.raises(openai.AuthenticationError, match="the key is missing or wrong"):
            opened.chat.completions.create(model="calc-1", messages=[QUESTION])
        with pytest.raises(openai.AuthenticationError):
            opened.models.list()
        right = opened.with_options(api_key="right")
        assert right.chat.completions.create(model="calc-1", messages=[QUESTION]).choices


def test_one_too_many_is_told_to_come_back():
    inside, go_on = threading.Event(), threading.Event()

    def answer(_: Request) -> str:
        inside.set()
        go_on.wait(60)
        return ANSWER

    with client(answer, Limits(waiting=1)) as opened:
        asked = {"model": "calc-1", "messages": [QUESTION]}
        kept = []
        first = threading.Thread(
            target=lambda: kept.append(opened.chat.completions.create(**asked))
        )
        first.start()
        assert inside.wait(60)
        with pytest.raises(openai.RateLimitError, match="come back later"):
            opened.chat.completions.create(**asked)
        with pytest.raises(openai.RateLimitError):
            opened.chat.completions.create(**asked, stream=True)
        go_on.set()
        first.join(60)
    assert kept[0].choices[0].message.content == "68 and 7"


def test_an_answer_that_takes_too_long_is_given_up():
    go_on = threading.Event()

    def answer(_: Request) -> str:
        go_on.wait(60)
        return ANSWER

    with client(answer, Limits(seconds=0.2)) as opened:
        with pytest.raises(openai.InternalServerError, match=r"no answer within 0\.2 s"):
            opened.chat.completions.create(model="calc-1", messages=[QUESTION])
        go_on.set()


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"model": "other"}, 404, "there is no model 'other'; this is 'calc-1'"),
        ({"n": 2}, 400, "n: "),
        ({"logit_bias": {"5": 1}}, 400, "logit_bias: Extra inputs are not permitted"),
        ({"messages": []}, 400, "messages: "),
        ({"temperature": 3}, 400, "temperature: "),
        ({"messages": [{"role": "tool", "content": "5"}]}, 400, "message 0 answers a tool call"),
        (
            {"messages": [QUESTION, {"role": "assistant", "content": "5"}]},
            400,
            "there is nothing to answer",
        ),
        (
            {"messages": [{"role": "system", "content": "Be kind."}]},
            400,
            "has no user message before it",
        ),
        ({"messages": [{**QUESTION, "content": "x " * 9000}]}, 200, ""),
        (
            {"messages": [{**QUESTION, "content": "x " * 9000}], "tools": [TOOL]},
            400,
            "no room is left to answer",
        ),
    ],
)
def test_what_is_not_understood_is_refused_with_the_reason(change, status, message):
    body = {"model": "calc-1", "messages": [QUESTION], **change}
    with served(Desk(agent(lambda _: ANSWER), Limits())) as address:
        found = httpx.post(f"{address}/chat/completions", json=body, timeout=60)
    assert found.status_code == status
    assert message in (found.json().get("error", {}).get("message", "") or "")


def test_a_body_that_is_too_large_is_not_read_to_its_end():
    with served(Desk(agent(lambda _: ANSWER), Limits(bytes=1000))) as address:
        found = httpx.post(f"{address}/chat/completions", content=b"x" * 5000, timeout=60)
    assert found.status_code == 413


def test_an_action_that_cannot_be_read_is_shown_as_it_was_written():
    with client(lambda _: "<tool_call> not json </tool_call>") as opened:
        found = opened.chat.completions.create(model="calc-1", messages=[QUESTION], tools=[TOOL])
    assert found.choices[0].message.content == "<tool_call> not json </tool_call>"
    assert found.choices[0].finish_reason == "stop"
