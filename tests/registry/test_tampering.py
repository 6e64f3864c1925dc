"""Whatever byte of a store is changed, nothing is placed, and the file is named."""

from __future__ import annotations

import json
import random

import pytest
from tests.registry.shared_recipe import stored

from agentrecipes.errors import CheckFailed, RecipeError
from agentrecipes.recipe.source import dump, parse
from agentrecipes.registry.card import plain_path, read_card, sha256_of
from agentrecipes.registry.fetch import pull, verify
from agentrecipes.registry.index import rebuild
from agentrecipes.registry.store import Folder

TRIALS = 30


@pytest.mark.parametrize("trial", range(TRIALS))
def test_a_changed_byte_is_found_and_its_file_named(tmp_path, trial):
    store, made = stored(tmp_path)
    files = sorted(path for path in store.rglob("*") if path.is_file())
    draw = random.Random(trial)
    target = files[trial % len(files)]
    data = bytearray(target.read_bytes())
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    target.write_bytes(bytes(data))
    with pytest.raises((CheckFailed, RecipeError)) as refused:
        pull(Folder(store), "capitals", tmp_path / "capitals")
    shown = target.relative_to(store).as_posix()
    names = {f"files/{f.sha256}": path for path, f in made.card.files.items()}
    assert names.get(shown, shown) in str(refused.value)
    assert not (tmp_path / "capitals").exists()


@pytest.mark.parametrize("name", ["card", "file"])
def test_what_is_gone_is_named(tmp_path, name):
    store, made = stored(tmp_path)
    lost = made.card.files["data/corpus.jsonl"].sha256
    path = {"card": "cards/capitals-1.2.0.yaml", "file": f"files/{lost}"}[name]
    (store / path).unlink()
    with pytest.raises(CheckFailed, match=f"{path}.* gone|gone .*{path}"):
        pull(Folder(store), "capitals", tmp_path / "capitals")


def test_verify_names_everything_that_does_not_hold(tmp_path):
    store, made = stored(tmp_path)
    for path in ("data/corpus.jsonl", "base.yaml"):
        (store / "files" / made.card.files[path].sha256).write_bytes(b"changed")
    count, problems = verify(Folder(store))
    assert count == 1
    assert [problem.split(" ")[1] for problem in problems] == ["base.yaml", "data/corpus.jsonl"]


def test_a_file_that_grew_is_not_read_to_its_end(tmp_path):
    store, made = stored(tmp_path)
    (store / "files" / made.card.files["base.yaml"].sha256).write_bytes(b"\0" * 5_000_000)
    with pytest.raises(CheckFailed, match=r"base\.yaml was changed: .* may have"):
        pull(Folder(store), "capitals", tmp_path / "capitals")


def test_a_link_in_a_store_leads_nowhere(tmp_path):
    store, made = stored(tmp_path)
    target = store / "files" / made.card.files["base.yaml"].sha256
    (tmp_path / "secret").write_bytes(target.read_bytes())
    target.unlink()
    target.symlink_to(tmp_path / "secret")
    with pytest.raises(CheckFailed, match="is a link"):
        pull(Folder(store), "capitals", tmp_path / "capitals")


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "/etc/x",
        "a/../x",
        "a//x",
        "./x",
        "a\\x",
        "C:x",
        "a\0x",
        "",
        "a/",
        "x.",
        " x",
        "a" * 201,
    ],
)
def test_a_path_that_could_lead_elsewhere_is_refused(path):
    with pytest.raises(ValueError, match=r"plain path|cannot be written"):
        plain_path(path)


def forged(store, change):
    """A card changed by someone who also makes its hash and the index again."""
    path = store / "cards" / "capitals-1.2.0.yaml"
    card = parse(path.read_text(), "card")
    change(card)
    path.write_text(dump(card))


def outside(card):
    card["files"]["../evil.yaml"] = card["files"].pop("base.yaml")


def twins(card):
    card["files"]["BASE.yaml"] = card["files"]["base.yaml"]


def too_large(card):
    for file in card["files"].values():
        file["bytes"] = 60 << 20


def unknown_field(card):
    card["run_this"] = "rm -rf"


@pytest.mark.parametrize("change", [outside, twins, too_large, unknown_field])
def test_a_card_that_says_what_no_card_may_say_is_refused_with_a_right_hash(tmp_path, change):
    store, _ = stored(tmp_path)
    forged(store, change)
    with pytest.raises(CheckFailed, match=r"cards/capitals-1\.2\.0\.yaml"):
        rebuild(Folder(store))
    data = (store / "cards" / "capitals-1.2.0.yaml").read_bytes()
    with pytest.raises(CheckFailed, match="capitals"):
        read_card(data, sha256_of(data), shown="capitals")


def test_a_card_under_another_name_is_refused(tmp_path):
    store, _ = stored(tmp_path)
    (store / "cards" / "capitals-1.2.0.yaml").rename(store / "cards" / "other-1.2.0.yaml")
    with pytest.raises(CheckFailed, match=r"is the card of capitals@1\.2\.0"):
        rebuild(Folder(store))


def test_an_index_with_another_mark_is_refused_with_what_to_do(tmp_path):
    store, _ = stored(tmp_path)
    index = parse((store / "index.yaml").read_text(), "index")
    index["recipes"]["capitals"]["9.9.9"] = "0" * 64
    (store / "index.yaml").write_text(json.dumps(index))
    with pytest.raises(CheckFailed, match=r"agentrecipes registry index --from"):
        pull(Folder(store), "capitals", tmp_path / "capitals")
