"""A retriever behind HTTP: the contract, and every way in which a server can fail."""

from __future__ import annotations

import asyncio
import json
import socket
import threading

import pytest
from tests.retrievers.served import passages_for, served

from agentrecipes.components import build
from agentrecipes.environments.protocol import Outcome
from agentrecipes.environments.search import Search
from agentrecipes.errors import TaskFailed
from agentrecipes.records import Action, Call, Passage, Stop
from agentrecipes.retrievers.http import Http
from agentrecipes.rollout.play import play, texts

QUICK = {"backoff_seconds": 0.0, "timeout_seconds": 5.0}


@pytest.fixture(scope="module")
def server():
    with served() as heard:
        yield heard


def test_queries_go_out_as_the_contract_says_and_passages_come_back(server):
    found = Http(url=server.url, top_k=2).open(()).search(["Rome", "Oslo"])
    assert server.bodies[-1] == {"queries": ["Rome", "Oslo"], "topk": 2, "return_scores": True}
    assert found[0] == [
        Passage("Rome-1", "Rome", "Text 1 of Rome."),
        Passage("Rome-2", "Rome", "Text 2 of Rome."),
    ]
    assert [passage.id for passage in found[1]] == ["Oslo-1", "Oslo-2"]
    assert [len(one) for one in Http(url=server.url).open(()).search(["Rome"], 1)] == [1]


def test_a_query_that_says_nothing_is_not_sent_and_keeps_its_place(server):
    asked = len(server.bodies)
    searcher = Http(url=server.url, top_k=1).open(())
    assert searcher.search(["", " ?! "]) == [[], []]
    assert searcher.search(["Rome"], 0) == [[]]
    assert searcher.search([]) == []
    assert len(server.bodies) == asked
    found = searcher.search(["", "Zürich \ud83d", "?"])
    assert [len(one) for one in found] == [0, 1, 0]
    assert server.bodies[-1]["queries"] == ["Zürich ?"]


def test_documents_may_have_titles_or_no_ids_and_are_told_once():
    rows = [{"title": "T", "text": "a"}, {"title": "T", "text": "a"}, {"id": 7, "contents": "b"}]
    reply = json.dumps({"result": [rows]}).encode()
    with served(lambda _: (200, reply)) as heard:
        [found] = Http(url=heard.url).open(()).search(["x"])
    assert [(one.title, one.text) for one in found] == [("T", "a"), ("", "b")]
    assert found[1].id == "7"


def test_a_server_that_is_busy_is_asked_again():
    left = [503, 429]
    with served(lambda body: (left.pop(), b"busy") if left else passages_for(body)) as heard:
        [found] = Http(url=heard.url, retries=2, **QUICK).open(()).search(["Rome"])
    assert len(found) == 3
    assert len(heard.bodies) == 3


@pytest.mark.parametrize(
    ("reply", "message", "tries"),
    [
        ((500, b"out of memory"), "says 500: out of memory; 2 tries", 2),
        ((404, b"no such page"), "says 404: no such page", 1),
        ((200, b"<html>"), "the reply is no JSON", 1),
        ((200, b'{"results": []}'), "'result' is no list of 1 lists", 1),
        ((200, b'{"result": [[], []]}'), "'result' is no list of 1 lists", 1),
        ((200, b'{"result": [{}]}'), "holds dict where a list belongs", 1),
        ((200, b'{"result": [["x"]]}'), "passage 1 is no object", 1),
        ((200, b'{"result": [[{"document": {"id": "1"}}]]}'), "passage 1 has title and text", 1),
        ((200, b"[" + b"1," * 600 + b"1]"), "longer than 1000 bytes", 1),
    ],
)
def test_a_server_that_fails_is_named_with_what_it_said(reply, message, tries):
    with served(lambda _: reply) as heard:
        searcher = Http(url=heard.url, retries=1, most_bytes=1000, **QUICK).open(())
        with pytest.raises(TaskFailed, match=r"127\.0\.0\.1") as caught:
            searcher.search(["Rome"])
    assert message in str(caught.value)
    assert len(heard.bodies) == tries


def test_a_server_that_is_down_or_slow_fails_within_its_limits():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/retrieve"
        with pytest.raises(TaskFailed, match="cannot be reached: ConnectError; 2 tries"):
            Http(url=url, retries=1, backoff_seconds=0.0).open(()).search(["x"])
    free = threading.Event()
    with served(lambda body: (free.wait(5), passages_for(body))[1]) as heard:
        searcher = Http(url=heard.url, retries=0, timeout_seconds=0.2).open(())
        with pytest.raises(TaskFailed, match=r"no reply within 0\.2 s; 1 tries"):
            searcher.search(["x"])
        free.set()


def test_the_key_comes_from_the_environment_and_is_in_no_field(server, monkeypatch):
    part = Http(url=server.url, key_variable="RETRIEVER_KEY")
    assert [problem.code for problem in part.rules(None)] == ["no_key"]
    monkeypatch.setenv("RETRIEVER_KEY", "s3cret")
    assert list(part.rules(None)) == []
    part.open(()).search(["Rome"])
    assert server.keys[-1] == "Bearer s3cret"
    assert "s3cret" not in str(part.dump())


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("localhost:8000", "wrong_value"),
        ("ftp://host/retrieve", "wrong_value"),
        ("http://me:pass@host/retrieve", "secret"),
        ("http://host/retrieve?key=1", "secret"),
    ],
)
def test_an_address_that_is_none_or_holds_a_secret_is_a_problem(url, code):
    assert [problem.code for problem in Http(url=url).rules(None)] == [code]


def searching(url: str, **fields: object):
    retriever = {"name": "http", "url": url, "retries": 0, "timeout_seconds": 0.5}
    parts = {"dataset": "sample", "retriever": retriever, **fields}
    return build("environment", {"name": "search", **parts})


SAID = ("<search> Rome </search>", "<answer> x </answer>")


def test_an_environment_searches_over_http(server):
    environment = searching(server.url)
    assert list(environment.rules(None)) == []
    played = play(environment, environment.tasks("dev")[0], agent=texts(SAID))
    assert played.stop is Stop.ANSWERED
    assert "Text 3 of Rome." in played.view.observations[0]


def test_a_server_that_is_down_ends_the_episode_or_is_shown_as_the_environment_says():
    with served(lambda _: (404, b"gone")) as heard:
        task = searching(heard.url).tasks("dev")[0]
        ended = play(searching(heard.url), task, agent=texts(SAID))
        shown = play(searching(heard.url, on_failure="error"), task, agent=texts(SAID))
    assert (ended.stop, ended.turns) == (Stop.TOOL_ERROR, 1)
    assert "says 404: gone" in ended.error
    assert (shown.stop, shown.turns) == (Stop.ANSWERED, 2)
    assert "error: the search failed: the retriever at" in shown.view.observations[0]


def test_a_slow_search_holds_up_nobody_else():
    free = threading.Event()

    def reply(body: dict) -> tuple[int, bytes]:
        if body["queries"] == ["slow"]:
            free.wait(5)
        return passages_for(body)

    async def both(environment: Search) -> tuple[Outcome, Outcome]:
        episodes = [environment.open(task, 0) for task in environment.tasks("dev")[:2]]
        slow, quick = (Action("", (Call("search", {"query": q}),)) for q in ("slow", "quick"))
        waiting = asyncio.create_task(episodes[0].step(slow))
        first = await episodes[1].step(quick)
        assert not waiting.done()
        free.set()
        return first, await waiting

    with served(reply) as heard:
        retriever = {"name": "http", "url": heard.url, "timeout_seconds": 6.0}
        first, second = asyncio.run(both(searching(heard.url, retriever=retriever)))
    assert "Text 1 of quick." in first.observation
    assert "Text 1 of slow." in second.observation
