from __future__ import annotations

from pathlib import Path

import pytest

from agentrecipes.cli.arguments import (
    Words,
    add_parts,
    find_recipe,
    find_run,
    one_name,
    runs_folder,
    split_words,
)
from agentrecipes.components import find
from agentrecipes.errors import RecipeError
from agentrecipes.recipe.layers import recipes_folder


def test_names_and_overrides_are_told_apart():
    words = ["r.yaml", "seed=3", "stages.reinforce.iterations=10", "rewards[0].weight=-1", "x"]
    assert split_words(words) == Words(
        ("r.yaml", "x"), ("seed=3", "stages.reinforce.iterations=10", "rewards[0].weight=-1")
    )


def test_a_file_that_is_called_like_an_override_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("seed=3").write_text("name: x")
    assert split_words(["seed=3", "seed=4"]) == Words(("seed=3",), ("seed=4",))


def test_one_recipe_is_one_recipe():
    assert one_name(Words(("a",), ()), "recipe") == "a"
    with pytest.raises(RecipeError, match="no recipe was given"):
        one_name(Words((), ("a=1",)), "recipe")
    with pytest.raises(RecipeError, match="got more: 'b'"):
        one_name(Words(("a", "b"), ()), "recipe")


def test_a_recipe_is_found_by_path_and_by_name_here_before_the_package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("recipes").mkdir()
    Path("recipes/mine.yaml").write_text("name: mine")
    assert find_recipe("recipes/mine.yaml") == Path("recipes/mine.yaml")
    assert find_recipe("mine") == Path("recipes/mine.yaml")
    assert find_recipe("mine.yaml") == Path("recipes/mine.yaml")


def test_a_recipe_of_the_package_is_found_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_recipe("rag_r1") == recipes_folder() / "rag_r1.yaml"


def test_a_recipe_that_is_not_there_suggests_close_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("recipes").mkdir()
    Path("recipes/ledger_dapo.yaml").write_text("name: x")
    with pytest.raises(
        RecipeError, match=r"no recipe 'legder_dapo'\. Did you mean 'ledger_dapo'\?"
    ):
        find_recipe("legder_dapo")
    with pytest.raises(RecipeError, match="'recipes' is a folder"):
        find_recipe("recipes")


def test_a_run_is_found_by_folder_and_by_name(tmp_path):
    folder = tmp_path / "runs" / "ledger-1"
    folder.mkdir(parents=True)
    (folder / "recipe.yaml").write_text("name: ledger")
    assert find_run(str(folder), None) == folder
    assert find_run("ledger-1", tmp_path / "runs") == folder
    with pytest.raises(RecipeError, match="Did you mean 'ledger-1'"):
        find_run("ledger-2", tmp_path / "runs")


def test_the_runs_folder_is_the_option_then_the_variable_then_runs(monkeypatch):
    monkeypatch.setenv("AGENTRECIPES_RUNS", "elsewhere")
    assert runs_folder(Path("given")) == Path("given")
    assert runs_folder(None) == Path("elsewhere")
    monkeypatch.delenv("AGENTRECIPES_RUNS")
    assert runs_folder(None) == Path("runs")


def test_parts_in_a_folder_become_known(tmp_path):
    source = (
        "from agentrecipes.components import Component, component\n\n\n"
        '@component("tool")\nclass Bell(Component):\n    """Rings."""\n\n    times: int = 1\n'
    )
    (tmp_path / "bell_of_the_test.py").write_text(source)
    add_parts(tmp_path)
    assert find("tool", "bell_of_the_test")().times == 1
    with pytest.raises(RecipeError, match="no folder"):
        add_parts(tmp_path / "nowhere")
