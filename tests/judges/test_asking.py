"""Asking: cache, time limits, what cannot be read, and what becomes of it all."""

from __future__ import annotations

import gzip
import time

import pytest
from tests.judges.server import served

from agentrecipes.components import build
from agentrecipes.errors import RecipeError
from agentrecipes.judges.asking import UNREADABLE, ask
from agentrecipes.judges.kept import Kept, key_of
from agentrecipes.judges.occasion import Occasion, opened


def judge(heard, **fields: object):
    own = {"model": "m", "base_url": heard.url, "backoff_seconds": 0.01, **fields}
    return build("judge", {"name": "openai", **own})


def number(reply):
    return float(reply) if reply.isdigit() else None


def test_every_reply_is_heard_with_its_raw_text():
    with served(lambda prompt: prompt) as heard, opened(Occasion("mine")) as occasion:
        values = [one.value for one in ask(judge(heard), ["7", "perhaps"], number)]
    assert values == [7.0, None]
    assert [(one.part, one.judge) for one in occasion.heard] == [("mine", "openai m")] * 2
    assert [(one.reply, one.problem) for one in occasion.heard] == [
        ("7", ""),
        ("perhaps", UNREADABLE),
    ]
    assert occasion.problem == UNREADABLE


def test_what_was_kept_is_never_asked_again_not_even_what_cannot_be_read(tmp_path):
    with served(lambda prompt: prompt) as heard:
        part = judge(heard, cache=str(tmp_path / "kept"))
        first = ask(part, ["7", "perhaps"], number)
    again = ask(part, ["7", "perhaps"], number)  # the server is gone
    assert [one.cached for one in first] == [False, False]
    assert [(one.reply, one.value, one.problem) for one in again] == [
        (one.reply, one.value, one.problem) for one in first
    ]
    assert all(one.cached for one in again)


def test_another_prompt_model_or_parameter_is_another_reply():
    identities = [{"model": "m", "tokens": 7}, {"model": "n", "tokens": 7}, {"model": "m"}]
    keys = {key_of(identity, prompt) for identity in identities for prompt in ("p", "q")}
    assert len(keys) == 6
    assert key_of({"tokens": 7, "model": "m"}, "p") == key_of(identities[0], "p")


def test_the_cache_of_the_reward_serves_a_judge_without_one(tmp_path):
    with served(lambda prompt: "1") as heard:
        for _ in range(2):
            with opened(Occasion("mine", cache=tmp_path)):
                ask(judge(heard), ["p"], number)
        assert len(heard.bodies) == 1


def test_on_one_occasion_nobody_is_asked_the_same_twice():
    with served(lambda prompt: "1") as heard, opened(Occasion("mine")):
        ask(judge(heard), ["p", "p"], number)
        ask(judge(heard), ["p"], number)
        assert len(heard.bodies) == 1


def test_a_damaged_file_of_the_cache_is_asked_for_again(tmp_path):
    with served(lambda prompt: "1") as heard:
        part = judge(heard, cache=str(tmp_path))
        ask(part, ["p"], number)
        [file] = tmp_path.glob("*/*.json")
        file.write_text('{"repl')
        assert ask(part, ["p"], number)[0].value == 1.0
        assert len(heard.bodies) == 2
    assert Kept(tmp_path).get(file.stem)["reply"] == "1"


def test_a_judge_that_takes_too_long_has_no_reply():
    with served(lambda prompt: "1", seconds=5.0) as heard:
        [slow] = ask(judge(heard, timeout_seconds=0.1), ["p"], number)
    assert (slow.reply, slow.value) == (None, None)
    assert "no reply within 0.1 seconds" in slow.problem


def test_the_reward_s_deadline_counts_too():
    deadline = time.monotonic() + 0.1
    with (
        served(lambda prompt: "1", seconds=5.0) as heard,
        opened(Occasion("mine", deadline=deadline)),
    ):
        [slow] = ask(judge(heard), ["p"], number)
    assert slow.reply is None


def test_a_recording_replays_what_another_judge_kept(tmp_path):
    with served(lambda prompt: f"{len(prompt)}") as heard:
        live = ask(judge(heard, cache=str(tmp_path / "kept")), ["a", "bb"], number)
    file = tmp_path / "judge.jsonl"
    file.write_text("".join(each.read_text() for each in (tmp_path / "kept").glob("*/*.json")))
    packed = tmp_path / "judge.jsonl.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    for path in (file, packed):
        recorded = build("judge", {"name": "recorded", "path": str(path)})
        again = ask(recorded, ["a", "bb", "ccc"], number)
        assert [one.value for one in again] == [one.value for one in live] + [None]
        assert again[2].problem == "the recording has no reply to this prompt"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"prompt": "a"}', ":1: no recorded reply"),
        ("hm", ":1: no JSON"),
        ('{"prompt": "a", "reply": "1"}\n{"prompt": "a", "reply": "2"}', ":2: .* two different"),
    ],
)
def test_a_recording_that_nobody_can_read_stops_everything(tmp_path, text, said):
    file = tmp_path / "judge.jsonl"
    file.write_text(text)
    with pytest.raises(RecipeError, match=said):
        ask(build("judge", {"name": "recorded", "path": str(file)}), ["a"], number)
