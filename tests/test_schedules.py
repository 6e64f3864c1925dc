"""Scalars that change with the iteration, at the values that the papers' formulas give."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrecipes import schedules
from agentrecipes.recipe.load import load
from agentrecipes.schedules import value_at

RECIPE = Path(__file__).parents[1] / "recipes" / "rag_r1.yaml"
HORIZON = "environment.max_turns={schedule: steps, values: [5, 8, 10], every: 100}"


@pytest.mark.parametrize(
    ("step", "turns"),
    [(1, 5), (100, 5), (101, 8), (102, 8), (150, 8), (200, 8), (201, 10), (500, 10)],
)
def test_the_horizon_is_scalinginter_s_at_every_step(step, turns):
    # AgentGym-RL counts steps from 1, iterations count from 0: stage min((step - 1) // 100, 2).
    # Resumed from 100, steps 101 and 102 are both 8: the value depends on the step alone.
    recipe = load(RECIPE, [HORIZON, "stages.reinforce.iterations=500"])
    assert recipe.stage(1, step - 1).environment.max_turns == turns


def weights(schedule, iterations):
    """The weight of a reward in these iterations, as the recipe gives it."""
    recipe = load(RECIPE, [f"rewards=[{{name: exact_match, weight: {schedule}}}]"])
    return [recipe.stage(1, iteration).rewards[0].weight for iteration in iterations]


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        # Atom-Searcher, 0.5 * (1 - T / T_max) at T / T_max of 0, 1/2, 1 and later
        ("{schedule: linear, from: 0.5, to: 0, over: 40}", [0.5, 0.25, 0.0, 0.0]),
        # SPEAR's tool bonus, 0.5 * (1 + cos(pi t / T)): 0.5 of its weight 0.5 at T / 2
        ("{schedule: cosine, from: 0.5, to: 0, over: 40}", [0.5, 0.25, 0.0, 0.0]),
        # SPEAR's replay weight, 0, 0.5, 1, 1: whole ends, fractions between them
        ("{schedule: cosine, from: 0, to: 1, over: 40}", [0.0, 0.5, 1.0, 1.0]),
        ("{schedule: linear, from: 3, to: 0, over: 40}", [3.0, 1.5, 0.0, 0.0]),
        ("{schedule: steps, values: [2, 1], every: 20}", [2.0, 1.0, 1.0, 1.0]),
        ("{schedule: constant, value: 2}", [2.0, 2.0, 2.0, 2.0]),
    ],
)
def test_reward_weights_are_the_papers_at_the_start_the_middle_and_the_end(schedule, expected):
    found = weights(schedule, (0, 20, 40, 70))
    assert found == pytest.approx(expected, abs=1e-12)
    assert all(type(weight) is float for weight in found)


def test_a_quarter_of_the_way_tells_a_cosine_from_a_line():
    # (1 - cos(pi / 4)) / 2 = 0.1464
    assert weights("{schedule: cosine, from: 0, to: 1, over: 40}", [10]) == [
        pytest.approx(0.14644660940672624)
    ]
    assert weights("{schedule: linear, from: 0, to: 1, over: 40}", [10]) == [0.25]


def test_whole_numbers_between_whole_ends_where_the_field_wants_them():
    # 3 + 7 * 5 / 10 = 6.5 and 3 + 7 * 3 / 10 = 5.1; Python rounds halves to even
    schedule = {"schedule": "linear", "from": 3, "to": 10, "over": 10}
    assert [value_at(schedule, n) for n in (0, 3, 5, 10)] == [3, 5, 6, 10]
    recipe = load(RECIPE, ["environment.max_turns={schedule: linear, from: 3, to: 10, over: 10}"])
    turns = [recipe.stage(1, n).environment.max_turns for n in (0, 3, 5, 10)]
    assert turns == [3, 5, 6, 10]
    assert all(type(number) is int for number in turns)


def test_a_resolved_recipe_with_schedules_is_itself_when_read_again(tmp_path):
    words = [
        HORIZON,
        "rewards=[{name: exact_match, weight: {schedule: linear, from: 1, to: 0, over: 9}}]",
    ]
    recipe = load(RECIPE, words)
    path = tmp_path / "recipe.yaml"
    path.write_text(recipe.to_yaml())
    again = load(path)
    assert (again.hash, again.data) == (recipe.hash, recipe.data)
    as_fractions = [words[0], words[1].replace("from: 1, to: 0", "from: 1.0, to: 0.0")]
    assert load(RECIPE, as_fractions).hash == recipe.hash


def test_only_numbers_become_fractions():
    schedule = {"schedule": "steps", "values": [1, 2.5, None, "a", True], "every": 3}
    assert schedules.in_fractions(schedule)["values"] == [1.0, 2.5, None, "a", True]
    assert type(schedules.in_fractions(schedule)["values"][0]) is float
    assert schedules.in_fractions(schedule)["every"] == 3
    assert schedule["values"][0] == 1


def test_a_schedule_turns_where_its_extremes_are():
    assert schedules.turning({"schedule": "constant", "value": 1}) == [0]
    assert schedules.turning({"schedule": "cosine", "from": 1.0, "to": 0.0, "over": 9}) == [0, 9]
    steps = {"schedule": "steps", "values": [5, 8, 10], "every": 7}
    turns = schedules.turning(steps)
    assert turns == [0, 7, 14]
    assert [schedules.value_at(steps, turn) for turn in turns] == schedules.extremes(steps)
