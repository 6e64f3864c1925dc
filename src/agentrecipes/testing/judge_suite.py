"""What every judge must hold; `suites` says how to use one.

A judge that asks somewhere else than in this process, and tries again, subclasses `RetryingSuite`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agentrecipes.components import build
from agentrecipes.errors import TaskFailed
from agentrecipes.judges.asking import ask
from agentrecipes.judges.loop import submit
from agentrecipes.judges.occasion import Occasion, opened
from agentrecipes.records import Judgement

SECONDS = 60.0  # longest wait for replies in a test


class Troubled(NamedTuple):
    """A judge that fails for a while, and how often it was tried."""

    judge: Any
    tries: Callable[[], int]


Trouble = Callable[[int], Troubled]
"""Gives a judge whose first so many tries fail; it has at least one retry."""


class JudgeSuite:
    """Fixture: ``judge``. Set `prompts` where it answers only some, as a recording does."""

    prompts: Sequence[str] = ("Is Rome old?", "Is it far?", "What is 2 + 2?")

    def replies(self, judge: Any, prompts: Sequence[str]) -> list[str]:
        """What the judge replies, on the loop on which judges work."""
        replies: list[str] = submit(judge.answer(prompts)).result(SECONDS)
        return replies

    def judged(self, judge: Any, occasion: Occasion) -> list[Judgement]:
        """What becomes of the prompts where a reward asks them."""
        with opened(occasion):
            return ask(judge, self.prompts, lambda reply: float(len(reply)))

    def test_there_is_one_reply_for_each_prompt_in_their_order(self, judge: Any) -> None:
        replies = self.replies(judge, self.prompts)
        assert [type(reply) for reply in replies] == [str] * len(self.prompts)
        again = {prompt: self.replies(judge, [prompt])[0] for prompt in reversed(self.prompts)}
        assert replies == [again[prompt] for prompt in self.prompts]

    def test_without_prompts_there_are_no_replies(self, judge: Any) -> None:
        assert self.replies(judge, []) == []

    def test_its_limits_are_above_zero(self, judge: Any) -> None:
        assert judge.asks_at_once >= 1
        assert judge.timeout_seconds > 0

    def test_who_it_is_is_plain_and_belongs_to_its_fields(self, judge: Any) -> None:
        identity = dict(judge.identity())
        assert json.loads(json.dumps(identity)) == identity
        again = build("judge", json.loads(json.dumps(judge.dump())))
        assert again == judge
        assert dict(again.identity()) == identity

    def test_beyond_the_deadline_there_is_no_reply_and_a_reason(self, judge: Any) -> None:
        late = self.judged(judge, Occasion("late", deadline=time.monotonic() - 1.0))
        assert [(one.reply, one.value) for one in late] == [(None, None)] * len(self.prompts)
        assert all("no reply within" in one.problem for one in late)

    def test_what_is_kept_is_not_asked_again(self, judge: Any, tmp_path: Path) -> None:
        first = self.judged(judge, Occasion("first", cache=tmp_path / "kept"))
        # nobody could answer so late: what comes was kept
        late = Occasion("again", cache=tmp_path / "kept", deadline=time.monotonic() - 1.0)
        again = self.judged(judge, late)
        assert [(one.reply, one.value) for one in again] == [
            (one.reply, one.value) for one in first
        ]
        assert [one.cached for one in (*first, *again)] == [False] * len(first) + [True] * len(
            again
        )

    def test_a_recording_of_it_replies_the_same(self, judge: Any, tmp_path: Path) -> None:
        first = self.judged(judge, Occasion("first", cache=tmp_path / "kept"))
        file = tmp_path / "judge.jsonl"
        kept = sorted((tmp_path / "kept").glob("*/*.json"))
        file.write_text("".join(each.read_text("utf-8") for each in kept), "utf-8")
        recorded = build("judge", {"name": "recorded", "path": str(file)})
        again = self.judged(recorded, Occasion("again"))
        assert [one.reply for one in again] == [one.reply for one in first]


class RetryingSuite(JudgeSuite):
    """Fixtures: ``judge``, and ``troubled``, which gives judges that fail for a while."""

    def test_what_fails_for_a_while_is_asked_again(self, troubled: Trouble) -> None:
        judge, tries = troubled(1)
        assert len(self.replies(judge, self.prompts[:1])) == 1
        assert tries() == 2

    def test_what_fails_for_good_is_tried_as_often_as_the_fields_say(
        self, troubled: Trouble
    ) -> None:
        judge, tries = troubled(10**6)
        with pytest.raises(TaskFailed):
            self.replies(judge, self.prompts[:1])
        assert tries() == judge.retries + 1

    def test_a_judge_that_failed_is_null_with_a_reason_and_is_not_kept(
        self, troubled: Trouble, tmp_path: Path
    ) -> None:
        judge, _ = troubled(10**6)
        failed = self.judged(judge, Occasion("failed", cache=tmp_path / "kept"))
        assert [(one.reply, one.value) for one in failed] == [(None, None)] * len(self.prompts)
        assert all(one.problem for one in failed)
        assert list(tmp_path.rglob("*.json")) == []
