from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.recipe.conftest import ONE, TWO

from agentrecipes.recipe.load import check, load
from agentrecipes.recipe.lock import compare, lock

SCHEDULES = """\
environment: {name: toy_room, max_turns: {schedule: steps, values: [2, 3], every: 4}}
optimizer:
  value_learning_rate: 1e-3
  learning_rate: {schedule: cosine, from: 1e-3, to: 0.1, over: 9}
paper: "1e-5"
"""
VARIED = TWO.replace("environment: toy_room\n", "") + SCHEDULES


@pytest.mark.parametrize("text", [ONE, TWO, VARIED])
def test_a_resolved_recipe_loads_as_an_equal_recipe(write, text):
    recipe = load(write(text))
    again = load(write(recipe.to_yaml(), "resolved.yaml"))
    assert again == recipe
    assert again.data == recipe.data
    assert again.hash == recipe.hash
    assert again.to_yaml() == recipe.to_yaml()
    assert hash(again) == hash(recipe)


@pytest.mark.parametrize("profile", [None, "smol", "grpo"])
def test_the_shipped_recipe_loads_and_its_resolved_form_too(write, profile):
    recipe = load("rag_r1", profile=profile)
    assert [stage.name for stage in recipe.stages] == ["imitate", "reinforce"]
    assert load(write(recipe.to_yaml())) == recipe


@settings(max_examples=25)
@given(
    st.fixed_dictionaries(
        {
            "temperature": st.floats(1e-6, 1e6),
            "tasks": st.integers(1, 10**9),
            "order": st.sampled_from([None, "fixed", "ready"]),
        }
    ),
    st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters="$"), max_size=8),
)
def test_whatever_a_recipe_says_survives_being_written(tmp_path_factory, rollout, paper):
    path = tmp_path_factory.mktemp("recipe") / "r.yaml"
    quoted = "'" + paper.replace("'", "''") + "'"
    path.write_text(f"{ONE}rollout: {json.dumps(rollout)}\npaper: {quoted}\n", encoding="utf-8")
    recipe = load(path)
    assert {key: recipe.data["stages"][0]["rollout"][key] for key in rollout} == rollout
    assert recipe.data["paper"] == paper
    path.write_text(recipe.to_yaml(), encoding="utf-8")
    assert load(path) == recipe


def test_comments_key_order_and_the_seed_do_not_change_the_hash(write):
    recipe = load(write(ONE))
    lines = [f"{line}  # why" for line in reversed(ONE.splitlines())]
    other = load(write("\n".join(lines) + "\nseed: 5\n"))
    assert other.hash == recipe.hash
    assert other != recipe
    assert other.seed == 5
    assert load(write(ONE), ["iterations=11"]).hash != recipe.hash


def test_a_number_written_in_two_ways_is_the_same_recipe(write):
    one = load(write(ONE), ["rollout.temperature=1"])
    other = load(write(ONE), ["rollout.temperature=1.0"])
    assert one.hash == other.hash == load(write(ONE)).hash


def test_the_lock_names_the_file_that_changed(write, tmp_path):
    data = write("{}", "data/a.jsonl")
    net = write("weights", "nets/mine/model.safetensors")
    text = ONE.replace("toy_net", "{name: toy_net, path: nets/mine}")
    text = text.replace("toy_room", "{name: toy_room, dataset: {name: toy_list, path: data}}")
    part = write("x = 1", "my_part.py")
    recipe = load(write(text))
    before = lock(recipe, extra_files=[part])
    assert compare(before, lock(recipe, extra_files=[part])) == []
    data.write_text("[]", encoding="utf-8")
    net.write_text("other", encoding="utf-8")
    part.write_text("x = 2", encoding="utf-8")
    assert compare(before, lock(recipe, extra_files=[part])) == [
        "file data/a.jsonl",
        "file nets/mine/model.safetensors",
        "part my_part.py",
    ]


def test_the_lock_compares_recipes_but_not_seeds(write):
    recipe = lock(load(write(ONE)))
    assert compare(recipe, lock(load(write(ONE), ["seed=9"]))) == []
    assert compare(recipe, lock(load(write(ONE), ["iterations=9"]))) == ["recipe"]
    changed = {**recipe, "inputs": {**recipe["inputs"], "package torch": "0"}}
    assert compare(recipe, changed) == ["package torch"]


def test_a_models_folder_comes_before_the_hub_in_the_lock(write, tmp_path, monkeypatch):
    write("weights", "models/somebody/net/model.safetensors")
    recipe = load(write(ONE))
    assert lock(recipe)["inputs"]["file somebody/net"] == "from a hub"
    monkeypatch.setenv("AGENTRECIPES_MODELS", str(tmp_path / "models"))
    assert "file somebody/net/model.safetensors" in lock(recipe)["inputs"]


def test_reading_a_recipe_imports_nothing_heavy():
    # A lazy module stands in sys.modules by its own name; what has been run brings submodules.
    code = (
        "import sys; from agentrecipes.recipe.load import load; load('rag_r1');"
        "heavy = ('torch.', 'transformers.', 'lightning.', 'mlflow.', 'optuna.');"
        "print([m for m in sys.modules if m.startswith(heavy)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_checking_a_recipe_again_takes_a_fraction_of_a_second():
    check("rag_r1")
    before = time.process_time()
    check("rag_r1")
    assert time.process_time() - before < 0.5
