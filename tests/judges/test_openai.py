"""The judge behind an OpenAI-style server: limits, retries, budget, and what it never tells."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.judges.server import served

from agentrecipes.components import build
from agentrecipes.errors import TaskFailed
from agentrecipes.judges.loop import submit


def judge(heard, **fields: object):
    own = {"model": "m", "base_url": heard.url, "backoff_seconds": 0.01, **fields}
    return build("judge", {"name": "openai", **own})


def answers(part, *prompts: str):
    return submit(part.answer(prompts)).result(20)


def test_replies_stand_in_the_order_of_the_prompts():
    with served(lambda prompt: prompt.upper()) as heard:
        said = answers(judge(heard, tokens=7, seed=3), *(f"p{n}" for n in range(9)))
    assert said == [f"P{n}" for n in range(9)]
    body = heard.bodies[0]
    assert (body["model"], body["max_tokens"], body["seed"], body["temperature"]) == ("m", 7, 3, 0)


def test_no_more_requests_are_on_their_way_than_the_recipe_says():
    with served(lambda prompt: "ok", seconds=0.05) as heard:
        answers(judge(heard, concurrency=3), *map(str, range(12)))
    assert heard.most == 3


def test_a_server_that_fails_for_a_while_is_asked_again():
    tries = iter([(503, "busy"), (429, "slow down"), "yes"])
    with served(lambda prompt: next(tries)) as heard:
        assert answers(judge(heard), "p") == ["yes"]
    assert len(heard.bodies) == 3


def test_a_request_that_is_wrong_is_not_repeated_and_says_why():
    with served(lambda prompt: (404, "no such model")) as heard:
        with pytest.raises(TaskFailed, match="404: no such model"):
            answers(judge(heard), "p")
        assert len(heard.bodies) == 1


def test_after_the_last_retry_the_judge_has_failed():
    with served(lambda prompt: (500, "down")) as heard:
        with pytest.raises(TaskFailed, match="500"):
            answers(judge(heard, retries=2), "p")
        assert len(heard.bodies) == 3


@pytest.mark.parametrize("body", ["hm", "[]", '{"choices": []}', '{"choices": [{"message": 1}]}'])
def test_what_is_no_completion_is_no_reply(body):
    with (
        served(lambda prompt: (200, body)) as heard,
        pytest.raises(TaskFailed, match="something else than was asked for"),
    ):
        answers(judge(heard, retries=1), "p")


def test_nobody_there_is_said_without_an_address_of_the_network_stack():
    with served(lambda prompt: "") as heard:
        gone = judge(heard, retries=0, tokens=31)
    with pytest.raises(TaskFailed, match="the judge cannot be reached: ConnectError"):
        answers(gone, "p")


def test_a_budget_of_calls_is_never_exceeded():
    with served(lambda prompt: "ok") as heard:
        small = judge(heard, budget={"calls": 3}, retries=0)
        said = [outcome(small, prompt) for prompt in "abcde"]
    assert said == ["ok"] * 3 + ["the judge's budget is spent: calls 3"] * 2
    assert len(heard.bodies) == 3


def outcome(part, prompt):
    try:
        return answers(part, prompt)[0]
    except TaskFailed as error:
        return str(error)


@pytest.mark.parametrize(
    ("budget", "asked"),
    [
        ({"tokens": 20}, 2),  # 12 tokens a reply: after two it is spent
        # 10 · 1 + 2 · 4 = 18 millionths a reply: spent after the third
        ({"cost": 5e-5, "prompt_price": 1.0, "reply_price": 4.0}, 3),
    ],
)
def test_a_budget_of_tokens_or_money_is_counted_by_what_the_server_says(budget, asked):
    with served(lambda prompt: "ok") as heard:
        small = judge(heard, budget=budget)
        said = [outcome(small, prompt) for prompt in "abcde"]
    assert said.count("ok") == len(heard.bodies) == asked


def test_the_key_is_sent_and_is_in_nothing_that_is_stored(monkeypatch):
    monkeypatch.setenv("MY_KEY", "s3cret")
    with served(lambda prompt: "ok") as heard:
        part = judge(heard, key_variable="MY_KEY")
        answers(part, "p")
    assert heard.headers[0]["Authorization"] == "Bearer s3cret"
    assert "s3cret" not in json.dumps([part.dump(), dict(part.identity())])


def test_a_distant_server_without_a_key_is_not_asked(monkeypatch):
    monkeypatch.delenv("MY_KEY", raising=False)
    far = build("judge", {"name": "openai", "model": "m", "key_variable": "MY_KEY"})
    with pytest.raises(TaskFailed, match="export MY_KEY="):
        answers(far, "p")


def test_the_address_is_part_of_who_replied_unless_it_is_loopback():
    near, other = (
        build("judge", {"name": "openai", "model": "m", "base_url": f"http://{where}/v1"})
        for where in ("127.0.0.1:1", "localhost:2")
    )
    far = build("judge", {"name": "openai", "model": "m"})
    assert near.identity() == other.identity() != far.identity()


@pytest.mark.parametrize(
    ("url", "code"),
    [("8000", "wrong_value"), ("ftp://x/v1", "wrong_value"), ("http://u:p@x/v1", "secret")],
)
def test_an_address_that_is_none_or_holds_a_secret_is_a_problem(url, code):
    part = build("judge", {"name": "openai", "model": "m", "base_url": url})
    assert [problem.code for problem in part.rules(None)] == [code]


def test_many_waits_cost_one_wait():
    with served(lambda prompt: "ok", seconds=0.1) as heard:
        part = judge(heard)
        answers(part, *map(str, range(64)))
    assert heard.most > 8  # were answered at once


def test_a_judge_works_in_another_event_loop_too():
    with served(lambda prompt: "ok") as heard:
        part = judge(heard)
        assert answers(part, "p") == ["ok"]
        assert asyncio.run(part.answer(["q"])) == ["ok"]
