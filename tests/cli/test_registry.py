"""``push``, ``pull`` and ``registry`` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

from tests.registry.shared_recipe import FILES, written


def test_a_pushed_recipe_is_found_shown_verified_and_pulled(command):
    written(Path("mine"))
    pushed = json.loads(command("push", "mine/capitals.yaml", "--to", "store", "--json").out)
    assert (pushed["name"], pushed["version"]) == ("capitals", "1.2.0")
    assert tuple(pushed["files"]) == FILES
    found = command("registry", "search", "CAPITALS", "--from", "store")
    assert found.out.splitlines()[1].split()[:3] == ["capitals", "1.2.0", "-"]
    assert command("registry", "search", "nothing-like-it", "--from", "store").out == (
        "nothing was found\n"
    )
    shown = command("registry", "show", "capitals", "--from", "store").out
    assert shown.startswith(f"capitals@1.2.0  {pushed['sha256']}\n")
    assert command("registry", "verify", "--from", "store").out == (
        "store: 1 versions, everything holds\n"
    )
    pulled = command("pull", "capitals", "--from", "store")
    assert (pulled.code, pulled.out) == (0, "agentrecipes run capitals/capitals.yaml\n")
    assert command("check", "capitals/capitals.yaml").code == 0


def test_a_card_without_figures_is_told(command):
    written(Path("mine"))
    done = command("push", "mine/capitals.yaml", "--to", "store")
    assert "the card has no figures: name finished runs of the recipe with --run" in done.err


def test_a_store_that_was_changed_ends_with_exit_code_4(command):
    written(Path("mine"))
    pushed = json.loads(command("push", "mine/capitals.yaml", "--to", "store", "--json").out)
    Path("store/files", pushed["files"]["base.yaml"]).write_bytes(b"seed: 1\n")
    pulled = command("pull", "capitals", "--from", "store")
    assert pulled.code == 4
    assert "base.yaml" in pulled.err
    verified = command("registry", "verify", "--from", "store", "--json")
    assert verified.code == 4
    told = json.loads(verified.out)
    assert (told["ok"], told["versions"], len(told["problems"])) == (False, 1, 1)
    assert not Path("capitals").exists()


def test_the_store_of_the_environment_is_the_default(command, monkeypatch):
    written(Path("mine"))
    command("push", "mine/capitals.yaml", "--to", "store")
    monkeypatch.setenv("AGENTRECIPES_REGISTRY", "store")
    assert command("pull", "capitals").code == 0


def test_words_that_are_no_name_are_refused(command):
    written(Path("mine"))
    command("push", "mine/capitals.yaml", "--to", "store")
    assert command("pull", "../capitals", "--from", "store").code == 2
    assert command("registry", "show", "--from", "store").code == 2
    assert command("registry", "verify", "a", "b", "--from", "store").code == 2
    assert command("registry", "index", "a", "--from", "store").code == 2
    lost = command("pull", "capitols", "--from", "store")
    assert lost.code == 2
    assert "Did you mean 'capitals'?" in lost.err


def test_the_index_is_made_again(command):
    written(Path("mine"))
    command("push", "mine/capitals.yaml", "--to", "store")
    Path("store/index.yaml").unlink()
    assert command("registry", "index", "--from", "store").out == "store: 1 versions\n"
    assert command("pull", "capitals", "--from", "store").code == 0
