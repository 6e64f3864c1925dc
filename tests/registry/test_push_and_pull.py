"""What is pushed comes back byte for byte, with its figures; a version never changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.registry.shared_recipe import FILES, finished, stored, written

from agentrecipes.errors import CheckFailed, RecipeError
from agentrecipes.recipe.load import load
from agentrecipes.registry.card import sha256_of
from agentrecipes.registry.fetch import pull, verify
from agentrecipes.registry.index import find, order, read_index, rebuild
from agentrecipes.registry.publish import push
from agentrecipes.registry.store import Folder, open_store


def test_a_pulled_recipe_is_the_pushed_one_with_all_that_it_reads(tmp_path):
    store, _ = stored(tmp_path)
    found = pull(Folder(store), "capitals", tmp_path / "capitals")
    names = sorted(
        path.relative_to(tmp_path / "capitals").as_posix()
        for path in (tmp_path / "capitals").rglob("*")
        if path.is_file()
    )
    assert tuple(names) == FILES
    for name in FILES[:-1]:
        assert (tmp_path / "capitals" / name).read_bytes() == (
            tmp_path / "mine" / name
        ).read_bytes()
    again, first = (load(tmp_path / where / "capitals.yaml") for where in ("capitals", "mine"))
    assert again.hash == first.hash == found.card.recipe_hash
    assert (found.card.version, found.card.title) == (
        "1.2.0",
        "Capitals (2026): what a store keeps of a recipe.",
    )


def test_the_card_has_the_figures_of_the_runs(tmp_path):
    recipe = load(written(tmp_path / "mine"))
    runs = [
        finished(tmp_path / f"run-{seed}", recipe, seed=seed, value=value)
        for seed, value in ((3, 0.5), (4, 0.75))
    ]
    card = push(recipe, Folder(tmp_path / "store"), runs).card
    [row] = card.results
    assert (row.split, row.seeds, row.values, row.mean) == ("test", (3, 4), (0.5, 0.75), 0.625)
    assert card.wall_seconds == (12.5, 12.5)
    assert find(Folder(tmp_path / "store"), "capitals").card == card


def test_figures_of_another_recipe_are_refused(tmp_path):
    recipe = load(written(tmp_path / "mine"))
    other = load(tmp_path / "mine" / "capitals.yaml", ["rollout.tasks=4"])
    run = finished(tmp_path / "run", other, seed=3, value=0.5)
    with pytest.raises(RecipeError, match="is of another recipe"):
        push(recipe, Folder(tmp_path / "store"), [run])
    assert not (tmp_path / "store").exists()


def test_a_run_that_did_not_finish_gives_no_figures(tmp_path):
    recipe = load(written(tmp_path / "mine"))
    (tmp_path / "run").mkdir()
    with pytest.raises(RecipeError, match="did not finish"):
        push(recipe, Folder(tmp_path / "store"), [tmp_path / "run"])


def test_pushing_the_same_twice_changes_nothing(tmp_path):
    store, made = stored(tmp_path)
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    assert push(load(tmp_path / "mine" / "capitals.yaml"), Folder(store)) == made
    assert {path: path.read_bytes() for path in store.rglob("*") if path.is_file()} == before


def test_a_version_that_is_there_never_changes(tmp_path):
    store, made = stored(tmp_path)
    with (tmp_path / "mine" / "base.yaml").open("a") as file:
        file.write("curriculum: uniform\n")
    recipe = load(tmp_path / "mine" / "capitals.yaml")
    with pytest.raises(CheckFailed, match=r"a version never changes. Raise `version`"):
        push(recipe, Folder(store))
    assert find(Folder(store), "capitals") == made
    newer = load(tmp_path / "mine" / "capitals.yaml", ["version=1.10.0"])
    push(newer, Folder(store))
    assert find(Folder(store), "capitals").card.version == "1.10.0"
    assert find(Folder(store), "capitals@1.2.0") == made
    assert verify(Folder(store)) == (2, [])


def test_what_the_command_line_changed_is_pushed_as_it_was_resolved(tmp_path):
    recipe = load(written(tmp_path / "mine"), ["rollout.tasks=4"])
    push(recipe, Folder(tmp_path / "store"))
    pull(Folder(tmp_path / "store"), "capitals", tmp_path / "capitals")
    assert load(tmp_path / "capitals" / "capitals.yaml").hash == recipe.hash
    assert not (tmp_path / "capitals" / "base.yaml").exists()


def test_a_file_outside_of_the_recipes_folder_is_refused(tmp_path):
    file = written(tmp_path / "mine")
    (tmp_path / "corpus.jsonl").write_bytes((file.parent / "data" / "corpus.jsonl").read_bytes())
    outside = f"environment.retriever.corpus={tmp_path / 'corpus.jsonl'}"
    with pytest.raises(RecipeError, match=r"lies outside of its folder. Put it beside"):
        push(load(file, [outside]), Folder(tmp_path / "store"))


def test_nothing_is_placed_over_what_is_there(tmp_path):
    store, _ = stored(tmp_path)
    (tmp_path / "capitals").mkdir()
    with pytest.raises(RecipeError, match=r"exists\. Move it away first"):
        pull(Folder(store), "capitals", tmp_path / "capitals")
    assert list((tmp_path / "capitals").iterdir()) == []


def test_an_unknown_name_or_version_is_told_with_what_there_is(tmp_path):
    store, _ = stored(tmp_path)
    with pytest.raises(RecipeError, match="Did you mean 'capitals'"):
        find(Folder(store), "capital")
    with pytest.raises(RecipeError, match=r"no version '2.0.0'. There are: 1.2.0"):
        find(Folder(store), "capitals@2.0.0")


def test_exactly_the_card_that_was_seen_can_be_asked_for(tmp_path):
    store, made = stored(tmp_path)
    with pytest.raises(CheckFailed, match=f"has the SHA-256 {made.sha256}, not 0"):
        pull(Folder(store), "capitals", tmp_path / "capitals", sha256="0" * 64)
    pull(Folder(store), "capitals", tmp_path / "capitals", sha256=made.sha256)


def test_the_index_can_be_made_again_from_the_cards(tmp_path):
    store, made = stored(tmp_path)
    before = (store / "index.yaml").read_bytes()
    (store / "index.yaml").unlink()
    assert read_index(Folder(store)) == {}
    assert rebuild(Folder(store)) == {"capitals": {"1.2.0": made.sha256}}
    assert (store / "index.yaml").read_bytes() == before


def test_versions_are_sorted_as_numbers_and_a_trial_comes_before_what_it_tries():
    versions = ["1.10.0", "1.2.0", "2.0.0-beta", "1.2", "2.0.0"]
    assert sorted(versions, key=order) == ["1.2", "1.2.0", "1.10.0", "2.0.0-beta", "2.0.0"]


def test_an_object_store_keeps_the_same(tmp_path):
    recipe = load(written(tmp_path / "mine"))
    store = open_store(f"memory://{tmp_path.name}")
    made = push(recipe, store)
    pull(store, "capitals", tmp_path / "capitals")
    assert load(tmp_path / "capitals" / "capitals.yaml").hash == recipe.hash
    assert rebuild(store) == {"capitals": {"1.2.0": made.sha256}}


def test_the_shipped_registry_holds(monkeypatch):
    monkeypatch.delenv("AGENTRECIPES_REGISTRY", raising=False)
    store = open_store(None)
    count, problems = verify(store)
    assert count >= 1
    assert problems == []


def test_every_registered_recipe_is_the_shipped_one():
    store = open_store(None)
    shipped = Path(__file__).parents[2] / "recipes"
    for name in read_index(store):
        card = find(store, name).card
        assert card.results, f"{name} was not measured"
        text = (shipped / f"{name}.yaml").read_bytes()
        assert card.files[f"{name}.yaml"].sha256 == sha256_of(text), "raise its version, push again"
