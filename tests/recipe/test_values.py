from __future__ import annotations

import os

import pytest
from tests.recipe.conftest import ONE, TOY

from agentrecipes.recipe.load import check, load

FROM_FILE = ONE.replace("toy_room", "{name: toy_room, dataset: {name: toy_list, path: PATH}}")


def dataset(recipe):
    return recipe.stages[0].environment.dataset


def test_a_relative_path_starts_at_the_recipes_folder(write, tmp_path):
    write("{}", "data/a.jsonl")
    recipe = load(write(FROM_FILE.replace("PATH", "data/a.jsonl")))
    assert dataset(recipe).path == str(tmp_path / "data" / "a.jsonl")
    assert recipe.data["stages"][0]["environment"]["dataset"]["path"] == "data/a.jsonl"


def test_a_typed_path_starts_where_the_user_stands(write, tmp_path, monkeypatch):
    write("{}", "elsewhere/a.jsonl")
    path = write(FROM_FILE.replace("PATH", "null"), "recipes/recipe.yaml")
    monkeypatch.chdir(tmp_path / "elsewhere")
    recipe = load(path, ["environment.dataset.path=a.jsonl"])
    assert dataset(recipe).path == str(tmp_path / "elsewhere" / "a.jsonl")


def test_a_path_of_a_recipe_may_not_leave_its_folder_but_a_typed_one_may(write, tmp_path):
    outside = write("{}", "secret.jsonl")
    for value in ("../secret.jsonl", str(outside)):
        path = write(FROM_FILE.replace("PATH", value), "recipes/recipe.yaml")
        _, [problem] = check(path)
        assert (problem.code, problem.path) == ("outside_folder", "environment.dataset.path")
        assert dataset(load(path, [f"environment.dataset.path={outside}"])).path == str(outside)


def test_a_link_out_of_the_folder_is_no_way_around(write, tmp_path):
    outside = write("{}", "secret.jsonl")
    path = write(FROM_FILE.replace("PATH", "link.jsonl"), "recipes/recipe.yaml")
    (path.parent / "link.jsonl").symlink_to(outside)
    _, [problem] = check(path)
    assert problem.code == "outside_folder"


def test_a_resolved_recipe_that_was_moved_still_finds_its_files(write, tmp_path):
    write("{}", "data/a.jsonl")
    recipe = load(write(FROM_FILE.replace("PATH", "data/a.jsonl")))
    moved = write(recipe.to_yaml(), "runs/one/recipe.yaml")
    again = load(moved, folder=recipe.folder)
    assert again == recipe
    assert dataset(again).path == dataset(recipe).path


def test_a_model_is_a_folder_beside_the_recipe_or_a_name_on_a_hub(write, tmp_path):
    path = write(ONE.replace("toy_net", "{name: toy_net, path: nets/mine}"))
    assert load(path).fields.model.path == "nets/mine"
    (tmp_path / "nets" / "mine").mkdir(parents=True)
    recipe = load(path)
    assert recipe.fields.model.path == str(tmp_path / "nets" / "mine")
    assert recipe.data["model"]["path"] == "nets/mine"


def test_a_prompt_is_a_text_or_the_text_of_a_file(write):
    path = write(ONE.replace("toy_room", "{name: toy_room, prompt: ask.md}"))
    _, [problem] = check(path)
    assert (problem.code, problem.path) == ("missing_file", "environment.prompt")
    write("Answer {question}\n", "ask.md")
    recipe = load(path)
    assert recipe.stages[0].environment.prompt == "Answer {question}\n"
    assert recipe.data["stages"][0]["environment"]["prompt"] == "ask.md"
    plain = load(path, ["environment.prompt=Just answer."])
    assert plain.stages[0].environment.prompt == "Just answer."


def test_variables_are_expanded_for_parts_and_kept_in_the_recipe(write, monkeypatch):
    monkeypatch.setenv("TOY_KEY", "s3cret")
    reward = "{name: toy_asked, judge: {name: toy_judge, key: '${oc.env:TOY_KEY}'}}"
    text = ONE.replace("toy_hit", reward) + "tracking: {uri: 'http://${oc.env:TOY_KEY}/x'}\n"
    recipe = load(write(text))
    assert recipe.stages[0].rewards[0].part.judge.key == "s3cret"
    assert recipe.fields.tracking.uri == "http://s3cret/x"
    assert "s3cret" not in recipe.to_yaml()
    assert "${oc.env:TOY_KEY}" in recipe.to_yaml()
    monkeypatch.setenv("TOY_KEY", "other")
    assert load(write(text)).hash == recipe.hash


def test_a_path_from_a_variable_is_named_by_the_user(write, monkeypatch, tmp_path):
    data = write("{}", "data.jsonl")
    monkeypatch.setenv("TOY_DATA", str(data))
    path = write(FROM_FILE.replace("PATH", "'${oc.env:TOY_DATA}'"), "recipes/recipe.yaml")
    assert dataset(load(path)).path == str(data)


@pytest.mark.parametrize(
    "value", ["'${oc.env:HOME,x}'", "'${oc.decode:1}'", "'$${oc.env:HOME} ${x}'"]
)
def test_no_other_interpolation_is_read(write, value):
    _, [problem] = check(write(ONE + f"tracking: {{uri: {value}}}\n"))
    assert problem.code == "interpolation"
    assert os.environ.get("HOME", "?") not in str(problem)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rollout.tasks", "true"),
        ("rollout.tasks", "'4'"),
        ("rollout.temperature", "'1.0'"),
        ("rollout.temperature", "yes"),
        ("optimizer.betas", "['0.9', 0.9]"),
        ("trainer.gradient_clip", "'1'"),
        ("steps", "'3'"),
    ],
)
def test_texts_and_truth_values_are_no_numbers(write, field, value):
    _, problems = check(write(TOY + "algorithm: toy_try\niterations: 3\n"), [f"{field}={value}"])
    assert "wrong_type" in {problem.code for problem in problems}


def test_a_field_that_takes_numbers_and_texts_takes_both(write):
    for value in (3, "'3'"):
        recipe = load(write(ONE.replace("toy_room", f"{{name: toy_room, size: {value}}}")))
        assert str(recipe.stages[0].environment.size) == "3"
