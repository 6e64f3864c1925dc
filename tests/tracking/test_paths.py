from __future__ import annotations

from agentrecipes.tracking.paths import flatten


def test_stages_are_addressed_by_name_and_other_lists_by_index():
    recipe = {
        "name": "x",
        "seed": 7,
        "stages": [
            {"name": "imitate", "optimizer": {"learning_rate": 4e-3}},
            {"name": "reinforce", "rewards": [{"name": "exact_match", "weight": 1.0}]},
        ],
    }
    assert flatten(recipe) == {
        "name": "x",
        "seed": "7",
        "stages.imitate.name": "imitate",
        "stages.imitate.optimizer.learning_rate": "0.004",
        "stages.reinforce.name": "reinforce",
        "stages.reinforce.rewards.0.name": "exact_match",
        "stages.reinforce.rewards.0.weight": "1.0",
    }


def test_stages_of_one_name_or_none_are_addressed_by_index():
    assert list(flatten({"stages": [{"name": "a"}, {"name": "a"}]})) == [
        "stages.0.name",
        "stages.1.name",
    ]
    assert list(flatten({"stages": ["a", "b"]})) == ["stages.0", "stages.1"]


def test_empty_values_stay_visible():
    assert flatten({"a": {}, "b": [], "c": None, "d": True, "e": ""}) == {
        "a": "{}",
        "b": "[]",
        "c": "null",
        "d": "true",
        "e": "",
    }
