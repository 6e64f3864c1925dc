"""Every curriculum passes the conformance suite, and none of them loops when it has nothing."""

from __future__ import annotations

import pytest

from agentrecipes.components import build, names
from agentrecipes.curricula.drawing import apportioned
from agentrecipes.errors import RunStopped
from agentrecipes.testing import CurriculumSuite
from curricula.made import after, tasks

VARIANTS = {
    "weighted": [{"weights": {"k0": 3.0, "k1": 0.5}}],
    "easy_to_hard": [{"by": "type", "order": ["k1", "k0"], "over": 3}],
    "stages": [{"plan": [{"shares": {"k0": 1, "k1": 3}}, {"from": 1, "shares": {"k1": 1}}]}],
    "success_band": [{}, {"by": "type", "unknown": 0.5}],
}
EVERY = [(name, fields) for name in names("curriculum") for fields in VARIANTS.get(name, [{}])]


class TestCurricula(CurriculumSuite):
    @pytest.fixture(params=EVERY, ids=str)
    def curriculum(self, request):
        name, fields = request.param
        return build("curriculum", {"name": name, **fields})


@pytest.mark.parametrize(
    ("part", "result", "said"),
    [
        ({"name": "hard_pool"}, 1.0, "of 3 tasks 3 were accepted"),
        ({"name": "hard_pool", "loops": 1}, 0.5, "of 3 tasks 0 were accepted and 3 tried 1 times"),
        ({"name": "solvable", "tries": 1}, 0.0, "none of 3 tasks is left"),
        ({"name": "success_band", "outside": "stop"}, 1.0, "a rate in [0.1, 0.9]"),
        ({"name": "weighted", "weights": {"k": 0}, "others": 0}, 0.5, "has a weight above 0"),
        ({"name": "stages", "plan": [{"shares": {"z": 1}}]}, 0.5, "no task has type 'z'"),
    ],
    ids=lambda value: value["name"] if isinstance(value, dict) else None,
)
def test_what_can_pick_nothing_says_so(part, result, said):
    curriculum, own = build("curriculum", part), tasks(a=1, b=2)
    state = after(curriculum, {task.id: result for task in own})
    with pytest.raises(RunStopped, match=f"^curriculum {part['name']}") as stopped:
        curriculum.pick(state, own, count=2, seed=1)
    assert said in str(stopped.value)


def test_numbers_are_in_proportion_and_exact_in_the_mean():
    # 7 in the shares 1 : 4 are 1.4 and 5.6, so that the first is 1 or 2, and 1.4 in the mean
    drawn = [apportioned([1.0, 4.0], 7, key=(seed, "x")) for seed in range(2000)]
    assert {tuple(numbers) for numbers in drawn} == {(1, 6), (2, 5)}
    mean = sum(first for first, _ in drawn) / len(drawn)
    assert 1.36 < mean < 1.44  # standard deviation of the mean: sqrt(0.4 * 0.6 / 2000) = 0.011


def test_a_share_of_nothing_gets_nothing():
    assert apportioned([0.0, 1.0, 0.0], 5, key=(3,)) == [0, 5, 0]
    assert apportioned([0.5, 0.5], 0, key=(3,)) == [0, 0]
