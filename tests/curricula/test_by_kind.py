"""Curricula that go by what a task is: weighted, stages, easy_to_hard."""

from __future__ import annotations

from collections import Counter

import pytest
from pydantic import ValidationError

from agentrecipes.curricula.easy_to_hard import EasyToHard
from agentrecipes.curricula.stages import Phase, Stages
from agentrecipes.curricula.weighted import Weighted
from agentrecipes.errors import RecipeError
from agentrecipes.records import Task
from curricula.made import after, ids, kinds, played, tasks


def test_the_first_draw_is_in_proportion_to_weight_times_number():
    # 10 tasks of weight 3 beside 20 of weight 1: 30 : 20, so 60 % of single draws
    own, curriculum = tasks(rare=10, usual=20), Weighted(weights={"rare": 3.0})
    first = Counter(curriculum.pick({}, own, count=1, seed=n)[0].type for n in range(2000))
    assert 1130 < first["rare"] < 1270  # 1200, standard deviation 22


def test_no_task_comes_twice_before_all_that_have_a_weight():
    own = tasks(a=4, b=3, c=5)
    picked = Weighted(weights={"a": 0.1, "b": 9.0, "c": 0.0}).pick({}, own, count=7, seed=3)
    assert sorted(ids(picked)) == ids(own[:7])
    more = Weighted(weights={"a": 0.1, "b": 9.0, "c": 0.0}).pick({}, own, count=10, seed=3)
    assert ids(more) == ids(picked) + ids(picked)[:3]


def test_any_field_tells_kinds_apart():
    own = [Task(f"t{n}", "train", "?", (), {"hops": n % 3, "deep": n > 5}) for n in range(9)]
    by_hops = Weighted(by="hops", weights={"2": 1.0}, others=0.0)
    assert {task.data["hops"] for task in by_hops.pick({}, own, count=3, seed=1)} == {2}
    by_flag = Weighted(by="deep", weights={"true": 1.0}, others=0.0)
    assert sorted(ids(by_flag.pick({}, own, count=3, seed=1))) == ["t6", "t7", "t8"]


PLAN = Stages(
    plan=(
        Phase(shares={"a": 1.0}),
        Phase.model_validate({"from": 2, "shares": {"a": 1, "b": 3}}),
        Phase.model_validate({"from": 3, "shares": {"c": 1}}),
    )
)


def test_a_phase_holds_from_its_iteration_on():
    own = tasks(a=20, b=20, c=20)
    draws = played(PLAN, own, lambda task: 0.5, iterations=5, count=8)
    found = [Counter(task.partition("-")[0] for task in draw) for draw in draws]
    assert found == [{"a": 8}, {"a": 8}, {"a": 2, "b": 6}, {"c": 8}, {"c": 8}]


def test_within_a_kind_none_comes_again_before_the_others():
    draws = played(PLAN, tasks(a=8, b=1, c=1), lambda task: 0.5, iterations=2, count=4)
    assert len({task for draw in draws for task in draw}) == 8


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ([{"from": 1, "shares": {"a": 1}}], "the first phase must begin at 0, but begins at 1"),
        ([{"shares": {"a": 1}}, {"shares": {"b": 1}}], "one after the other"),
        ([{"shares": {"a": 0, "b": 0}}], "every share is 0"),
        ([], "at least 1"),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused(plan, said):
    with pytest.raises(ValidationError, match=said):
        Stages.model_validate({"plan": plan})


def hops(*numbers: int):
    """One task for each number of hops."""
    own = enumerate(numbers)
    return [Task(f"t{n}", "train", "?", (), {"hops": number}) for n, number in own]


def opened(curriculum, own):
    """After 0, 1, ... 12 iterations, which hops are in the draw."""
    state, found = {}, []
    for iteration in range(13):
        picked = curriculum.pick(state, own, count=len(own), seed=iteration)
        found.append({task.data["hops"] for task in picked})
        state = curriculum.observe(state, {})
    return found


def test_levels_open_one_after_the_other_equally_long():
    # three levels (1, 2, 4) over 9 iterations: three iterations each
    own = hops(4, 1, 2, 1, 2, 4)
    assert opened(EasyToHard(over=9), own) == [{1}] * 3 + [{1, 2}] * 3 + [{1, 2, 4}] * 7
    alone = opened(EasyToHard(over=9, keeps_easier=False), own)
    assert alone == [{1}] * 3 + [{2}] * 3 + [{4}] * 7


def test_masks_are_counted_in_the_question():
    # MaskSearch sorts by the number of masks, few first
    texts = ["[mask] is [mask]", "a [mask]", "[mask] [mask] [mask]"]
    own = [Task(f"t{n}", "train", text) for n, text in enumerate(texts)]
    curriculum = EasyToHard(by="question", occurrences="[mask]", over=3, keeps_easier=False)
    draws = played(curriculum, own, lambda task: 0.0, iterations=4, count=1)
    assert draws == [["t1"], ["t0"], ["t2"], ["t2"]]


def test_a_list_is_as_hard_as_it_is_long_and_words_go_by_their_order():
    own = [Task(f"t{n}", "train", "?", (), {"facts": ["f"] * (3 - n)}) for n in range(3)]
    assert ids(EasyToHard(by="facts").pick({}, own, count=1, seed=0)) == ["t2"]
    levels = [Task(w, "train", "?", (), {"level": w}) for w in ("hard", "easy", "medium")]
    curriculum = EasyToHard(by="level", order=("easy", "medium", "hard"))
    assert ids(curriculum.pick({}, levels, count=1, seed=0)) == ["easy"]


def test_what_does_not_say_how_hard_it_is_is_refused():
    with pytest.raises(RecipeError, match=r"'a-0' has type 'a', which says not how hard it is"):
        EasyToHard(by="type").pick({}, tasks(a=1), count=1, seed=0)


def test_weights_ignore_results():
    curriculum = Weighted(weights={"a": 2.0})
    assert after(curriculum, {"a-0": 1.0}, {"a-0": 0.0}) == {}
    assert kinds(curriculum.pick({}, tasks(a=2), count=2, seed=1)) == {"a": 2}
