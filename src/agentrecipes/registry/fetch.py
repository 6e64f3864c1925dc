"""A version out of a store, and a whole store held to its hashes. Nothing in either is executed."""

from __future__ import annotations

import shutil
from pathlib import Path

from agentrecipes.errors import AgentRecipesError, CheckFailed, RecipeError
from agentrecipes.registry.card import Card, require_hash
from agentrecipes.registry.index import Entry, entry, find, read_index
from agentrecipes.registry.store import Store
from agentrecipes.tracking.replacing import write


def pull(store: Store, wanted: str, target: Path, *, sha256: str | None = None) -> Entry:
    """Write ``NAME`` or ``NAME@VERSION`` to the new folder `target`, when every hash is right.

    `sha256` is that of the card, for those who want exactly what they have seen before.

    Raises:
        RecipeError: there is no such recipe, or `target` exists.
        CheckFailed: something in the store was changed; nothing is written.
    """
    found = find(store, wanted)
    if sha256 is not None and found.sha256 != sha256:
        raise CheckFailed(f"{wanted} has the SHA-256 {found.sha256}, not {sha256}")
    if target.exists():
        raise RecipeError.about("taken", f"{str(target)!r} exists", "Move it away first.")
    files = {path: content(store, found.card, path) for path in found.card.files}
    temporary = target.with_name(f".{target.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        for path, data in files.items():
            write(temporary / path, data)
        temporary.rename(target)
    except OSError as error:
        raise AgentRecipesError(f"{target}: cannot be written: {error}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return found


def content(store: Store, card: Card, path: str) -> bytes:
    """One file of a bundle, held to its hash.

    Raises:
        CheckFailed: it is gone, or was changed.
    """
    file = card.files[path]
    shown = f"{card.name}@{card.version}: {path}"
    try:
        data = store.read(f"files/{file.sha256}", file.bytes)
    except FileNotFoundError:
        raise CheckFailed(f"{shown} is gone (files/{file.sha256})") from None
    except CheckFailed as error:
        raise CheckFailed(f"{shown} was changed: {error}") from None
    require_hash(data, file.sha256, shown=f"{shown} (files/{file.sha256[:12]}…)")
    return data


def verify(store: Store, wanted: str | None = None) -> tuple[int, list[str]]:
    """How many versions were looked at, and everything that does not hold.

    Without `wanted` these are all versions of the store.

    Raises:
        CheckFailed: the index itself was changed.
        RecipeError: there is no such recipe.
    """
    if wanted is not None:
        return 1, _faults(store, find(store, wanted).card)
    problems, count = [], 0
    for name, versions in read_index(store).items():
        for version, sha256 in versions.items():
            count += 1
            try:
                problems += _faults(store, entry(store, name, version, sha256=sha256).card)
            except CheckFailed as error:
                problems.append(str(error))
    return count, problems


def _faults(store: Store, card: Card) -> list[str]:
    problems = []
    for path in card.files:
        try:
            content(store, card, path)
        except CheckFailed as error:
            problems.append(str(error))
    return problems
