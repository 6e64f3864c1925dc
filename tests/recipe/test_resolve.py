from __future__ import annotations

import pytest
from tests.recipe.conftest import ONE, TOY, TWO

from agentrecipes.errors import RecipeError
from agentrecipes.recipe.load import check, load

BRING = TOY + "algorithm: toy_bring\niterations: 5\n"


def test_a_part_brings_defaults_that_the_recipes_own_values_beat(write):
    path = write(BRING + "rollout: {top_p: 0.5}\n")
    recipe = load(path)
    rollout = recipe.stages[0].rollout
    assert (rollout.temperature, rollout.top_p, rollout.tasks) == (0.7, 0.5, 16)
    prefix = "stages.toy_bring.rollout."
    origin = {key: recipe.origin[prefix + key] for key in ("temperature", "top_p", "tasks")}
    assert origin == {
        "temperature": "brought by toy_bring",
        "top_p": f"{path}:7",
        "tasks": "default",
    }


def test_a_brought_reward_stands_beside_the_recipes_own_once(write):
    rewards = [e.label for e in load(write(BRING)).stages[0].rewards]
    assert rewards == ["toy_hit", "toy_cost"]
    own = BRING.replace("[toy_hit]", "[toy_hit, {name: toy_cost, weight: 0}]")
    entries = load(write(own)).stages[0].rewards
    assert [(entry.label, entry.weight) for entry in entries] == [
        ("toy_hit", 1.0),
        ("toy_cost", 0.0),
    ]


def test_the_top_level_beats_what_a_part_brings_also_where_a_stage_changes_the_part(write):
    path = write(TWO.replace("tasks: 4", "tasks: 4, top_p: 0.25"))
    recipe = load(path, ["stages.try.algorithm=toy_bring"])
    assert recipe.stages[1].rollout.top_p == 0.25
    assert recipe.stages[1].rollout.temperature == 0.7


def test_every_value_says_where_it_came_from(write):
    path = write(TWO + "profiles:\n  fast:\n    rollout: {group_size: 2}\n")
    recipe = load(path, ["stages.try.iterations=3"], profile="fast")
    expected = {
        "name": f"{path}:1",
        "seed": "default",
        "model.name": f"{path}:2",
        "model.width": "default",
        "stages.copy.name": f"{path}:8",
        "stages.copy.environment.dataset.name": "default",
        "stages.copy.rewards[0].name": f"{path}:4",
        "stages.copy.rollout.tasks": f"{path}:5",
        "stages.try.rollout.group_size": f"profile fast ({path}:16)",
        "stages.try.iterations": "command line",
        "stages.try.optimizer.betas": "default",
    }
    assert {key: recipe.origin[key] for key in expected} == expected


def paths(value, path):
    """The dotted path of every scalar and every list of scalars."""
    if isinstance(value, dict) and value:
        return [p for key, v in value.items() for p in paths(v, f"{path}.{key}" if path else key)]
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [p for index, item in enumerate(value) for p in paths(item, f"{path}[{index}]")]
    return [path]


def test_each_value_of_the_resolved_recipe_has_an_origin(write):
    recipe = load(write(TWO))
    top = {key: value for key, value in recipe.data.items() if key != "stages"}
    expected = set(paths(top, ""))
    for stage in recipe.data["stages"]:
        expected |= set(paths(stage, f"stages.{stage['name']}"))
    assert set(recipe.origin) == expected


def test_what_a_stage_inherits_without_effect_is_dropped(write):
    copy, attempt = load(
        write(TWO + "iterations: 9\noptimizer: {value_learning_rate: 1e-3}\n")
    ).stages
    assert (copy.iterations, copy.optimizer.value_learning_rate) == (None, None)
    assert (attempt.demonstrations, attempt.optimizer.value_learning_rate) == (None, 1e-3)


def test_a_profile_that_changes_the_algorithm_leaves_the_old_ones_fields_behind(write):
    text = TWO + "    optimizer: {value_learning_rate: 1e-3}\n"
    profile = "profiles:\n  other: {stages: {try: {algorithm: toy_bring}}}\n"
    recipe = load(write(text + profile), profile="other")
    assert recipe.stages[1].optimizer.value_learning_rate is None
    late = profile.replace("toy_bring}", "toy_bring, optimizer: {value_learning_rate: 2e-3}}")
    _, [problem] = check(write(text + late), profile="other")
    assert (problem.code, problem.path) == (
        "no_effect",
        "stages.try.optimizer.value_learning_rate",
    )


def test_the_resolved_form_spells_out_every_field(write):
    data = load(write(ONE)).data
    assert data["model"] == {"name": "toy_net", "path": "somebody/net", "width": 8}
    [stage] = data["stages"]
    assert stage["algorithm"] == {"name": "toy_try", "rate": 0.5}
    assert stage["rewards"] == [
        {
            "name": "toy_hit",
            "strict": True,
            "weight": 1.0,
            "scope": "trajectory",
            "missing": "drop",
        }
    ]
    assert stage["environment"]["dataset"] == {"name": "toy_list", "path": None, "tags": []}


def test_a_set_is_spelled_out_in_order(write):
    text = ONE.replace("toy_room", "{name: toy_room, dataset: {name: toy_list, tags: [c, a, b]}}")
    dataset = load(write(text)).data["stages"][0]["environment"]["dataset"]
    assert dataset["tags"] == ["a", "b", "c"]


def test_all_problems_of_all_stages_are_raised_at_once(write):
    text = TWO.replace("steps: 20", "steps: none").replace("rate: 0.25", "rate: fast") + "sed: 1\n"
    with pytest.raises(RecipeError) as caught:
        load(write(text))
    assert [problem.path for problem in caught.value.problems] == [
        "stages.copy.steps",
        "stages.try.algorithm.rate",
        "sed",
    ]


def test_a_shipped_name_of_rewards_is_a_preset_and_another_is_guessed(write):
    _, [problem] = check(write(ONE.replace("[toy_hit]", "toy_hit")))
    assert (problem.code, problem.suggestion) == (
        "unknown_preset",
        "Write a list: `rewards: [toy_hit]`.",
    )
