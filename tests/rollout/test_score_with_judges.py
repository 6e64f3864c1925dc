"""Scoring with judges: side by side, in order, within limits, and again from what was kept."""

from __future__ import annotations

import threading
import time
from typing import ClassVar

import pytest
from playground import play_texts
from tests.judges.server import served

from agentrecipes.components import Component
from agentrecipes.errors import RunStopped
from agentrecipes.health.metrics import rollout_metrics
from agentrecipes.recipe.schema import RewardEntry
from agentrecipes.rewards.protocol import View
from agentrecipes.rollout.score import score, score_view
from agentrecipes.tracking.tables import Place, Tables

TRAJECTORY, _ = play_texts("look door !", "say yes !")


class Slow(Component):
    """Waits, and is not asked for long."""

    kind: ClassVar[str] = "reward"
    part_name: ClassVar[str] = "slow"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset()
    seconds: float = 3.0
    error: bool = False

    def score(self, view):
        if self.error:
            raise ZeroDivisionError("a bug")
        time.sleep(self.seconds)
        return 1.0


def entry(heard, **fields: object):
    judge = {"name": "openai", "model": "m", "base_url": heard.url, "backoff_seconds": 0.01}
    own = {"name": "judge", "prompt": "{transcript}", "judge": judge}
    return RewardEntry.model_validate({**own, **fields})


def trajectories(count):
    """As many as wanted, told apart by how many doors the first turn looks at."""
    return [play_texts(f"look {'door ' * (n + 1)}!", "say yes !")[0] for n in range(count)]


def even_doors(prompt):
    return "Verdict: no" if prompt.count("door") % 2 else "Verdict: yes"


def test_trajectories_wait_side_by_side_and_stand_in_their_order():
    many = trajectories(12)
    with served(even_doors, seconds=0.1) as heard:
        scored = score(many, [entry(heard)])
    assert heard.most > 3  # were answered at once
    assert [each.trajectory for each in scored] == many
    assert [each.parts["judge"] for each in scored] == [float(n % 2 == 1) for n in range(12)]


def test_scores_from_the_cache_are_the_same_bit_for_bit_without_a_server(tmp_path):
    many, kept = trajectories(6), str(tmp_path / "kept")
    with served(even_doors) as heard:
        mine = entry(heard, cache=kept, weight=0.3)
        first = score(many, [mine])
        assert len(heard.bodies) == 6
    again = score(many, [mine])
    assert [(one.parts, one.total, one.per_turn) for one in again] == [
        (one.parts, one.total, one.per_turn) for one in first
    ]
    assert all(judgement.cached for one in again for judgement in one.judgements)


def test_a_malformed_reply_is_null_counted_and_kept_with_its_raw_text(tmp_path):
    import pyarrow.parquet as pq

    many = trajectories(3)
    replies = iter(["Verdict: yes", "as an AI I cannot say", "Verdict: no"])
    with served(lambda prompt: next(replies)) as heard:
        problems = []
        scored = []
        for one in many:
            scored += score([one], [entry(heard)])
            problems += score_view(View.of(one), []).problems
    assert [one.parts["judge"] for one in scored] == [1.0, None, 0.0]
    assert [one.total for one in scored] == [1.0, None, 0.0]
    figures = rollout_metrics(scored)
    assert (figures["reward/judge_null"], figures["judge/unreadable"]) == (1.0, 1.0)
    assert (figures["judge/asked"], figures["judge/failed"]) == (3.0, 0.0)
    Tables(tmp_path, "r").trajectories(scored, Place("s", 0, "train", "sampled"))
    [file] = (tmp_path / "judgements").glob("*.parquet")
    rows = pq.read_table(file).to_pylist()
    assert [(row["reply"], row["value"]) for row in rows] == [
        ("Verdict: yes", 1.0),
        ("as an AI I cannot say", None),
        ("Verdict: no", 0.0),
    ]
    assert rows[1]["problem"] == "the judge's reply could not be read"


def test_without_judges_there_is_no_table_of_judgements(tmp_path):
    scored = score([TRAJECTORY], [RewardEntry(part="format_valid")])
    Tables(tmp_path, "r").trajectories(scored, Place("s", 0, "train", "sampled"))
    assert not (tmp_path / "judgements").exists()
    assert "judge/asked" not in rollout_metrics(scored)


def test_a_judge_deep_inside_is_heard_and_asked_only_where_it_counts():
    with served(lambda prompt: "hm") as heard:
        judge = entry(heard).part.dump()
        gate = {"name": "gate", "when": "answer_present", "else": 0.0, "then": [judge]}
        found = score_view(View.of(TRAJECTORY), [RewardEntry.model_validate(gate)])
        silent, _ = play_texts("what", "what", "what")
        closed = score_view(View.of(silent), [RewardEntry.model_validate(gate)])
        assert len(heard.bodies) == 1  # once, although the reason is looked for again
    assert found.problems == (
        "gate could not be computed: judge could not be computed: "
        "the judge's reply could not be read",
    )
    assert [one.part for one in found.judgements] == ["gate"]
    assert (closed.total, closed.judgements) == (0.0, ())


def test_a_judge_that_fails_stops_the_run_where_the_recipe_says_so():
    with served(lambda prompt: (400, "no")) as heard, pytest.raises(RunStopped, match="says 400"):
        score(trajectories(4), [entry(heard, missing="stop")])


def test_a_reward_that_takes_too_long_is_null():
    late = RewardEntry(part=Slow(), timeout_seconds=0.05)
    in_time = RewardEntry(part=Slow(seconds=0.0), timeout_seconds=60.0, **{"as": "quick"})
    found = score_view(View.of(TRAJECTORY), [late, in_time])
    assert found.parts == {"slow": None, "quick": 1.0}
    assert found.problems == ("slow took longer than 0.05 seconds",)


def test_a_bug_in_a_reward_with_a_time_limit_is_still_a_bug():
    with pytest.raises(ZeroDivisionError):
        score_view(View.of(TRAJECTORY), [RewardEntry(part=Slow(error=True), timeout_seconds=5.0)])


def test_scoring_leaves_no_threads_behind():
    with served(lambda prompt: "Verdict: yes") as heard:
        score(trajectories(4), [entry(heard)])
    assert not [one for one in threading.enumerate() if one.name.startswith("score")]
