from __future__ import annotations

import pytest
from tests.recipe.conftest import ONE, TOY, TWO

from agentrecipes.errors import RecipeError
from agentrecipes.recipe.draft import STAGE
from agentrecipes.recipe.load import check, load
from agentrecipes.recipe.merge import merge
from agentrecipes.recipe.positions import Place, dotted, plain, split, written


def merged(base, over):
    """Two stages' plain values laid over each other."""
    trees = [written(value, Place("test")) for value in (base, over)]
    return plain(merge(*trees, STAGE))


def test_mappings_merge_key_by_key_and_lists_replace():
    base = {"optimizer": {"betas": [0.1, 0.2], "decay": "linear"}, "steps": 3}
    over = {"optimizer": {"betas": [0.3, 0.4]}}
    assert merged(base, over) == {
        "optimizer": {"betas": [0.3, 0.4], "decay": "linear"},
        "steps": 3,
    }


@pytest.mark.parametrize(
    ("base", "over", "result"),
    [
        # another name replaces the part whole, in its long and in its short form
        ({"name": "toy_try", "rate": 1}, {"name": "toy_copy"}, {"name": "toy_copy"}),
        ({"name": "toy_try", "rate": 1}, "toy_copy", {"name": "toy_copy"}),
        ("toy_try", {"name": "toy_copy", "x": 1}, {"name": "toy_copy", "x": 1}),
        # the same name, or none, merges
        ({"name": "toy_try", "rate": 1}, {"name": "toy_try"}, {"name": "toy_try", "rate": 1}),
        ({"name": "toy_try", "rate": 1}, "toy_try", {"name": "toy_try", "rate": 1}),
        ("toy_try", {"rate": 2}, {"name": "toy_try", "rate": 2}),
        # an overlay that is itself incomplete
        ({"rate": 2}, "toy_try", {"rate": 2, "name": "toy_try"}),
        ({"name": "toy_try"}, None, None),
    ],
)
def test_a_part_is_replaced_by_name_and_merged_otherwise(base, over, result):
    assert merged({"algorithm": base}, {"algorithm": over})["algorithm"] == result


def test_a_part_inside_a_part_follows_the_same_rule():
    base = {"environment": {"name": "toy_room", "dataset": {"name": "toy_list", "tags": ["a"]}}}
    same = merged(base, {"environment": {"dataset": {"path": "x"}}})
    other = merged(base, {"environment": {"dataset": "toy_torn"}})
    assert same["environment"]["dataset"] == {"name": "toy_list", "tags": ["a"], "path": "x"}
    assert other["environment"] == {"name": "toy_room", "dataset": {"name": "toy_torn"}}


def test_the_name_of_the_optimizer_is_no_parts_name():
    base = {"optimizer": {"name": "adamw", "decay": "linear"}}
    over = {"optimizer": {"name": "sgd"}}
    assert merged(base, over)["optimizer"] == {"name": "sgd", "decay": "linear"}


def test_a_schedule_replaces_a_value_and_is_changed_by_its_keys():
    schedule = {"schedule": "linear", "from": 1, "to": 0, "over": 9}
    base = {"rollout": {"temperature": schedule}}
    steps = {"schedule": "steps", "values": [1], "every": 2}
    assert merged({"rollout": {"temperature": 1}}, base) == base
    assert merged(base, {"rollout": {"temperature": steps}})["rollout"]["temperature"] == steps
    changed = merged(base, {"rollout": {"temperature": {"over": 5}}})
    assert changed["rollout"]["temperature"] == {**schedule, "over": 5}


def test_paths_are_written_and_read_alike():
    loc = ("stages", "try", "rewards", 1, "name")
    assert dotted(loc) == "stages.try.rewards[1].name"
    assert split(dotted(loc)) == loc


@pytest.mark.parametrize("wrong", ["", "a..b", "a[", "a[x]", ".a", "a[1"])
def test_a_malformed_path_is_refused(wrong):
    with pytest.raises(ValueError, match=r"empty key|malformed list index"):
        split(wrong)


def test_a_profile_reaches_stages_by_their_names(write):
    path = write(TWO + "profiles:\n  fast: {rollout: {tasks: 2}, stages: {try: {iterations: 1}}}\n")
    recipe = load(path, profile="fast")
    assert [stage.rollout.tasks for stage in recipe.stages] == [2, 2]
    assert (recipe.stages[0].steps, recipe.stages[1].iterations) == (20, 1)
    assert recipe.profile == "fast"
    assert "profiles" not in recipe.data


def test_overrides_come_after_the_profile_and_speak_yaml(write):
    path = write(TWO + "profiles:\n  fast: {stages: {try: {iterations: 1}}}\n")
    overrides = [
        "stages.try.iterations=7",
        "optimizer.learning_rate=1e-5",
        "rewards=[{name: toy_hit, weight: 2}]",
        "stages.try.rewards[0].weight=3",
        "seed=3",
    ]
    recipe = load(path, overrides, profile="fast")
    assert recipe.stages[1].iterations == 7
    assert recipe.stages[0].optimizer.learning_rate == 1e-5
    assert [stage.rewards[0].weight for stage in recipe.stages] == [2.0, 3.0]
    assert recipe.seed == 3


@pytest.mark.parametrize("order", [1, -1])
def test_a_name_and_its_fields_may_be_overridden_in_any_order(write, order):
    overrides = ["stages.try.algorithm.name=toy_bring", "stages.try.rollout.top_p=0.5"]
    overrides += ["stages.copy.algorithm=toy_try", "stages.copy.algorithm.rate=0.125"]
    overrides += ["stages.copy.iterations=2"]
    recipe = load(write(TWO), overrides[::order])
    assert recipe.stages[0].algorithm.rate == 0.125
    assert recipe.stages[1].algorithm.part_name == "toy_bring"
    assert recipe.stages[1].rollout.top_p == 0.5


@pytest.mark.parametrize(
    ("override", "text"),
    [
        ("rewards[5].weight=1", "has 1 entries"),
        ("rollout[0]=1", "holds no list"),
        ("seed", "no `=`"),
        ("=3", "no key"),
        ("a..b=3", "empty key"),
        ("seed=[1", "no YAML"),
        ("paper=${seed}", "${oc.env:NAME}"),
        ("extends=other.yaml", "may not stand here"),
        ("stages=[]", "a mapping from stage name"),
        ("stages.try.name=other", "keeps its name"),
        ("stages.try=3", "mapping of fields"),
    ],
)
def test_an_override_that_cannot_be_laid_is_named(write, override, text):
    recipe, [problem] = check(write(TWO), [override])
    assert recipe is None
    assert text in problem.message
    assert repr(override) in problem.message


def test_an_override_that_another_replaces_is_a_warning(write):
    recipe, [problem] = check(write(ONE), ["seed=1", "seed=2"])
    assert recipe.seed == 2
    assert (problem.severity, problem.path) == ("warning", "seed")
    assert "another override replaces it" in problem.message


def test_a_file_extends_another_and_may_change_its_stages(write):
    write(TWO + "profiles:\n  fast: {rollout: {tasks: 2}}\n", "base.yaml")
    child = write("extends: base.yaml\nname: child\nstages: {copy: {steps: 5}}\n")
    recipe = load(child, profile="fast")
    assert (recipe.name, recipe.stages[0].steps, recipe.stages[0].rollout.tasks) == ("child", 5, 2)
    assert [path.name for path in recipe.files] == ["base.yaml", "recipe.yaml"]
    assert "extends" not in recipe.data


def test_a_list_of_stages_replaces_that_of_the_file_it_extends(write):
    write(TWO, "base.yaml")
    stages = "stages:\n  - {name: only, algorithm: toy_try, iterations: 2}\n"
    assert [s.name for s in load(write("extends: base.yaml\n" + stages)).stages] == ["only"]


def test_files_that_extend_one_another_in_a_circle_are_told(write):
    write("extends: recipe.yaml\n", "base.yaml")
    with pytest.raises(RecipeError, match="leads back"):
        load(write("extends: base.yaml\n"))


def test_a_recipe_extends_a_shipped_one_by_its_bare_name(write):
    recipe = load(write("extends: rag_r1\nname: mine\nrollout: {tasks: 2}\n"))
    assert [stage.rollout.tasks for stage in recipe.stages] == [2, 2]
    assert recipe.name == "mine"


def test_a_bare_name_is_a_shipped_recipe_and_a_misspelt_one_is_guessed():
    assert load("rag_r1").name == "rag_r1"
    _, [problem] = check("rag_r2")
    assert (problem.code, problem.suggestion) == ("missing_file", "Did you mean 'rag_r1'?")


def test_a_recipe_without_stages_is_one_stage_called_after_its_algorithm(write):
    assert [stage.name for stage in load(write(ONE)).stages] == ["toy_try"]
    renamed = load(write(ONE), ["algorithm=toy_bring"])
    assert [stage.name for stage in renamed.stages] == ["toy_bring"]


def test_a_stage_takes_from_the_top_level_what_it_does_not_write(write):
    text = TWO.replace("iterations: 10", "iterations: 10\n    rollout: {group_size: 2}")
    copy, attempt = load(write(text)).stages
    assert (copy.rollout.tasks, copy.rollout.group_size) == (4, 8)
    assert (attempt.rollout.tasks, attempt.rollout.group_size) == (4, 2)


def test_unknown_keys_of_the_toy_recipe_are_told_once(write):
    text = TOY.replace("toy_room", "{name: toy_room, max_turn: 2}") + TWO.removeprefix(TOY)
    _, [problem] = check(write(text))
    assert (problem.code, problem.path) == ("unknown_key", "environment.max_turn")
