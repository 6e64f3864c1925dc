"""Curricula that go by results: success_band, solvable, hard_pool, replay_failures."""

from __future__ import annotations

from collections import Counter

import pytest
from pydantic import ValidationError

from agentrecipes.curricula.hard_pool import HardPool
from agentrecipes.curricula.replay_failures import ReplayFailures
from agentrecipes.curricula.solvable import Solvable
from agentrecipes.curricula.success_band import SuccessBand
from curricula.made import after, ids, kinds, played, tasks

FOUR = tasks(t=4)
BAND = SuccessBand(low=0.2, high=0.7, memory=0.75)


def test_the_rate_begins_at_the_first_result_and_moves_by_the_memory():
    state = after(BAND, {"t-0": 0.4}, {"t-0": 0.8, "t-1": 0.25})
    # 0.75 * 0.4 + 0.25 * 0.8 = 0.5; of iterations 0 and 1 the last, seen twice and once
    assert state["tasks"] == {"t-0": [pytest.approx(0.5), 1, 2], "t-1": [0.25, 1, 1]}
    assert state["iterations"] == 2


def test_what_is_unknown_comes_first_then_the_band_then_the_nearest():
    # 0.7 is in the band; 0.1 lies 0.1 below it, 0.9 lies 0.2 above; t-3 is unknown
    state = after(BAND, {"t-0": 0.9, "t-1": 0.1, "t-2": 0.7})
    for seed in range(10):
        assert ids(BAND.pick(state, FOUR, count=4, seed=seed)) == ["t-3", "t-2", "t-1", "t-0"]


def test_at_most_the_stated_share_is_unknown_where_the_band_has_enough():
    own = tasks(new=10, old=10)
    state = after(BAND, {f"old-{n}": 0.5 for n in range(10)})
    half = BAND.model_copy(update={"unknown": 0.5})
    assert kinds(half.pick(state, own, count=7, seed=1)) == {"new": 4, "old": 3}
    assert kinds(half.pick(state, own, count=16, seed=1)) == {"new": 8, "old": 8}
    assert kinds(BAND.pick(state, own, count=7, seed=1)) == {"new": 7}
    few = half.pick(state, own[:12], count=9, seed=1)  # two in the band: new ones fill up
    assert kinds(few) == {"new": 7, "old": 2}
    assert len(set(ids(few))) == 9


def test_tasks_outside_never_come_while_the_band_can_repeat_alone():
    curriculum = BAND.model_copy(update={"outside": "stop"})
    state = after(curriculum, {"t-0": 0.9, "t-1": 0.1, "t-2": 0.7, "t-3": 0.2})
    assert Counter(ids(curriculum.pick(state, FOUR, count=6, seed=1))) == {"t-2": 3, "t-3": 3}


def test_a_kind_that_comes_back_shares_the_draws_and_does_not_catch_up_first():
    own = tasks(long=20, short=20)
    curriculum = BAND.model_copy(update={"by": "type"})
    # every short task was seen three times, a long one once, long ago and in the band by now
    state = after(curriculum, *[{f"short-{n}": 0.5 for n in range(20)}] * 3, {"long-0": 0.5})
    draws = [kinds(curriculum.pick(state, own, count=20, seed=seed)) for seed in range(8)]
    # long tasks, never seen before, would have taken all of each draw; now a half, give or take one
    assert all(9 <= drawn["short"] <= 11 for drawn in draws)
    assert all("long-0" not in ids(curriculum.pick(state, own, count=20, seed=n)) for n in range(8))


def test_what_lay_outside_is_unknown_again_after_a_while():
    curriculum = BAND.model_copy(update={"retry": 2})
    results = {"t-0": 0.0, "t-1": 0.5, "t-2": 0.5, "t-3": 0.5}
    # Its result is of iteration 0. In iteration 2 it still counts, in iteration 3 no longer.
    early = after(curriculum, results, {})
    late = after(curriculum, results, {}, {})
    assert curriculum.distances(early, FOUR)["t-0"] == pytest.approx(0.2)
    assert curriculum.distances(late, FOUR)["t-0"] is None
    assert curriculum.distances(late, FOUR)["t-1"] == 0
    never = BAND.model_copy(update={"retry": None})
    assert never.distances(late, FOUR)["t-0"] == pytest.approx(0.2)


def test_tasks_of_a_kind_share_a_rate_that_forgets():
    own, curriculum = tasks(a=3, b=3), BAND.model_copy(update={"by": "type"})
    state = after(curriculum, {"a-0": 1.0, "b-0": 0.5}, {"a-1": 0.3})
    # a: (0.75 * 1.0 + 1 * 0.3) / 1.75 = 0.6, in the band; with equal weights 0.65
    assert curriculum.distances(state, own) == {task.id: 0 for task in own}
    higher = curriculum.model_copy(update={"low": 0.61})
    far = higher.distances(state, own)
    assert far["a-2"] == far["a-0"] == pytest.approx(0.01)
    assert far["b-2"] == pytest.approx(0.11)
    unseen = tasks(a=3, c=3)
    assert set(ids(curriculum.pick(state, unseen, count=3, seed=1))) == {"c-0", "c-1", "c-2"}


def test_a_band_the_wrong_way_round_is_refused():
    with pytest.raises(ValidationError, match=r"low is 0\.9, which is above high, 0\.1"):
        SuccessBand(low=0.9, high=0.1)


def test_a_task_that_was_never_solved_is_dropped_after_its_tries():
    # RAG-R1: kept if solved at least once in up to 10 samples; here in 3 results
    curriculum = Solvable(tries=3, easy=1.0)
    results = {"t-0": 0.0, "t-1": 0.0, "t-2": 0.25}
    twice, thrice = after(curriculum, results, results), after(curriculum, *[results] * 3)
    assert set(ids(curriculum.pick(twice, FOUR, count=4, seed=1))) == set(ids(FOUR))
    assert set(ids(curriculum.pick(thrice, FOUR, count=4, seed=1))) == {"t-2", "t-3"}
    solved = after(curriculum, results, {**results, "t-0": 0.125}, results)
    assert "t-0" in ids(curriculum.pick(solved, FOUR, count=3, seed=1))


def test_of_the_easy_tasks_the_stated_share_stays_whatever_the_seed():
    own = tasks(easy=400, some=50)
    state = after(Solvable(), {task.id: 1.0 if task.type == "easy" else 0.5 for task in own})
    kept = {frozenset(ids(Solvable().pick(state, own, count=400, seed=n))) for n in range(3)}
    assert len(kept) == 1  # 400 are more than are kept: each draw holds all of them
    [left] = kept
    assert 75 < sum(task.startswith("easy") for task in left) < 125  # 100, deviation 8.7
    assert sum(task.startswith("some") for task in left) == 50


def test_an_easy_task_that_fails_once_is_easy_no_more():
    curriculum = Solvable(easy=0.0)
    state = after(curriculum, {"t-0": 1.0, "t-1": 1.0}, {"t-0": 0.75})
    assert set(ids(curriculum.pick(state, FOUR, count=3, seed=1))) == {"t-0", "t-2", "t-3"}


def test_what_is_accepted_leaves_the_pool_and_never_comes_back():
    curriculum = HardPool(accept_from=0.8)
    state = after(curriculum, {"t-0": 0.8, "t-1": 0.79}, {"t-0": 0.0})
    assert state["accepted"] == ["t-0"]
    assert set(ids(curriculum.pick(state, FOUR, count=9, seed=1))) == {"t-1", "t-2", "t-3"}


def test_every_task_of_the_pool_is_tried_once_a_loop():
    draws = played(HardPool(), tasks(t=6), lambda task: float(task.id < "t-2"), **TWO_LOOPS)
    first, second, third = (set(a + b) for a, b in zip(draws[::2], draws[1::2], strict=True))
    assert first == {f"t-{n}" for n in range(6)}
    assert second == third == {f"t-{n}" for n in range(2, 6)}


TWO_LOOPS = {"iterations": 6, "count": 3}


def test_an_empty_pool_may_be_refilled():
    curriculum = HardPool(empty="refill")
    state = after(curriculum, {task.id: 1.0 for task in FOUR})
    assert sorted(ids(curriculum.pick(state, FOUR, count=4, seed=1))) == ids(FOUR)


def test_a_share_of_the_draw_has_failed_lately():
    own = tasks(failed=5, fresh=40)
    curriculum = ReplayFailures(share=0.25)
    state = after(curriculum, {f"failed-{n}": 0.25 for n in range(5)})
    picked = curriculum.pick(state, own, count=16, seed=1)
    assert kinds(picked) == {"failed": 4, "fresh": 12}  # a quarter of 16
    assert len(set(ids(picked))) == 16
    drawn = Counter(
        task for n in range(1000) for task in ids(curriculum.pick(state, own, count=4, seed=n))[:1]
    )
    assert all(150 < drawn[f"failed-{n}"] < 250 for n in range(5))  # 200, standard deviation 13


def test_a_task_that_is_solved_is_no_failure_any_more():
    curriculum = ReplayFailures(below=0.5)
    state = after(curriculum, {"t-0": 0.2, "t-1": 0.4, "t-2": 0.5}, {"t-0": 0.6})
    assert state["failed"] == ["t-1"]


def test_the_newest_failures_push_the_oldest_out():
    curriculum = ReplayFailures(capacity=2)
    state = after(curriculum, {"t-0": 0.0}, {"t-1": 0.0}, {"t-0": 0.1}, {"t-3": 0.0})
    assert state["failed"] == ["t-0", "t-3"]


def test_without_failures_it_draws_as_uniform_does():
    draws = played(ReplayFailures(), tasks(t=8), lambda task: 1.0, iterations=2, count=4)
    assert len({task for draw in draws for task in draw}) == 8
