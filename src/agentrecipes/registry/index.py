"""The index of a store: which versions there are, and the hash of each one's card."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from agentrecipes.errors import CheckFailed, RecipeError
from agentrecipes.recipe.source import dump, parse
from agentrecipes.registry.card import Card, card_text, read_card, sha256_of
from agentrecipes.registry.store import Store

PATH = "index.yaml"
MOST = 1 << 20  # bytes of an index or a card

Versions = dict[str, dict[str, str]]
"""Name → version → SHA-256 of the card."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A version that a store has."""

    card: Card
    sha256: str  # of the card; it covers every file


def card_path(name: str, version: str) -> str:
    """Where a store has the card of a version."""
    return f"cards/{name}-{version}.yaml"


def read_index(store: Store) -> Versions:
    """All versions of a store; none where it is empty.

    Raises:
        CheckFailed: the index was changed by hand.
    """
    try:
        data = store.read(PATH, MOST)
    except FileNotFoundError:
        return {}
    try:
        found = parse(data.decode(), PATH)
    except (RecipeError, UnicodeDecodeError) as error:
        reason = "; ".join(str(error).splitlines())
        raise CheckFailed(f"{store.shown}: {PATH} was changed: {reason}") from None
    recipes = found.get("recipes", {})
    if found.get("sha256") != _mark(recipes) or set(found) != {"recipes", "sha256"}:
        raise CheckFailed(
            f"{store.shown}: {PATH} was changed by hand. Make it again from the cards: "
            f"agentrecipes registry index --from {store.shown}"
        )
    return {str(name): dict(versions) for name, versions in recipes.items()}


def write_index(store: Store, versions: Mapping[str, Mapping[str, str]]) -> None:
    """Replace the index."""
    ordered = {
        name: dict(sorted(versions[name].items(), key=lambda item: order(item[0])))
        for name in sorted(versions)
    }
    store.write(PATH, dump({"recipes": ordered, "sha256": _mark(ordered)}).encode())


def rebuild(store: Store) -> Versions:
    """The index made again from the cards that lie in the store, and written.

    Raises:
        CheckFailed: a card cannot be read, or lies under another's name.
    """
    versions: Versions = {}
    for file in store.names("cards"):
        data = store.read(f"cards/{file}", MOST)
        card = read_card(data, sha256_of(data), shown=f"cards/{file}")
        if card_path(card.name, card.version) != f"cards/{file}":
            raise CheckFailed(f"cards/{file} is the card of {card.name}@{card.version}")
        versions.setdefault(card.name, {})[card.version] = sha256_of(data)
    write_index(store, versions)
    return versions


def find(store: Store, wanted: str) -> Entry:
    """The card of ``NAME@VERSION``, or of the newest version of ``NAME``.

    Raises:
        RecipeError: the store has no such recipe; it suggests close names.
        CheckFailed: the index or the card was changed.
    """
    versions = read_index(store)
    name, _, version = wanted.partition("@")
    if name not in versions:
        guess = get_close_matches(name, versions, n=1)
        hint = f"Did you mean {guess[0]!r}?" if guess else "See: agentrecipes registry search."
        raise RecipeError.about(
            "missing_recipe", f"there is no recipe {name!r} in {store.shown}", hint
        )
    version = version or max(versions[name], key=order)
    if version not in versions[name]:
        known = ", ".join(sorted(versions[name], key=order))
        raise RecipeError.about(
            "missing_recipe", f"{name!r} has no version {version!r}", f"There are: {known}."
        )
    return entry(store, name, version, sha256=versions[name][version])


def entry(store: Store, name: str, version: str, *, sha256: str) -> Entry:
    """The card of a version, held to its hash.

    Raises:
        CheckFailed: it is not there, or was changed.
    """
    path = card_path(name, version)
    try:
        data = store.read(path, MOST)
    except FileNotFoundError:
        raise CheckFailed(f"{store.shown}: {path} is gone") from None
    card = read_card(data, sha256, shown=path)
    if (card.name, card.version) != (name, version):
        raise CheckFailed(f"{path} is the card of {card.name}@{card.version}")
    return Entry(card, sha256)


def add(store: Store, card: Card) -> Entry:
    """Put a card into a store; its files must be there already.

    Raises:
        CheckFailed: this version is there with other content.
    """
    data = card_text(card).encode()
    made = Entry(card, sha256_of(data))
    versions = read_index(store)
    known = versions.get(card.name, {}).get(card.version)
    if known is not None and known != made.sha256:
        raise CheckFailed(
            f"{store.shown} has {card.name}@{card.version} with other content, and a version "
            "never changes. Raise `version` in the recipe"
        )
    store.write(card_path(card.name, card.version), data)
    versions.setdefault(card.name, {})[card.version] = made.sha256
    write_index(store, versions)
    return made


def order(version: str) -> tuple[tuple[int, int | str], ...]:
    """Sorts versions: numbers as numbers, and words (``1.0-beta``) before the plain version."""
    pieces = version.replace("-", ".-").split(".")
    found: list[tuple[int, int | str]] = [
        (1, int(piece)) if piece.isdigit() else (-1, piece) for piece in pieces
    ]
    return (*found, (0, 0))


def _mark(recipes: Any) -> str:
    return sha256_of(json.dumps(recipes, sort_keys=True).encode())
