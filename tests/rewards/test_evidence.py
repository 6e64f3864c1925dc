"""Rewards for what observations show."""

from __future__ import annotations

import pytest
from tests.rewards.views import played

from agentrecipes.rewards.progress import Progress
from agentrecipes.rewards.retrieval_hit import RetrievalHit

TITLES = ("Rome", "Latium", "The Tiber")


def seen(*observations: str, **data: object):
    return played(*(("Rome", each, ()) for each in observations), **data)


@pytest.mark.parametrize(
    ("observations", "expected"),
    [
        (("Doc 1 (Title: ROME) …",), 1.0),
        (("nothing", "in Rome."), 1.0),
        (("Jerome",), 0.0),  # whole words
        (("",), 0.0),  # the policy's own "Rome" does not count
        ((), 0.0),
    ],
)
def test_a_gold_answer_counts_where_an_observation_shows_it(observations, expected):
    assert RetrievalHit().score(seen(*observations, golds=("Oslo", "Rome"))) == expected


def test_supporting_passages_count_as_a_share():
    reward = RetrievalHit(of="supporting")
    view = seen("Tiber and Rome", "Rome", supporting_titles=TITLES)
    assert reward.score(view) == 2 / 3
    assert reward.reads == {"supporting_titles"}
    assert RetrievalHit().reads == {"golden_answers"}


def test_progress_is_what_a_turn_shows_for_the_first_time():
    view = seen("Rome", "Rome, the Tiber", "Oslo", "Latium", supporting_titles=TITLES)
    assert Progress().score(view) == [1 / 3, 1 / 3, 0.0, 1 / 3]


def test_progress_to_a_gold_answer_is_made_once():
    view = seen("Oslo", "Rome", "Rome and Roma", golds=("Rome", "Roma"))
    assert Progress(of="gold").score(view) == [0.0, 1.0, 0.0]


def test_without_what_is_needed_both_are_null():
    assert RetrievalHit().score(seen("x", golds=("the",))) is None
    assert Progress().score(seen("x")) is None
    assert Progress().score(seen("x", supporting_titles="Rome")) is None
