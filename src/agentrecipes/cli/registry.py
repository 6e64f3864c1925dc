"""``registry``, ``push`` and ``pull``: recipes with their figures, shared through a store."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentrecipes.cli.arguments import (
    Json,
    Parts,
    Profile,
    RecipeWords,
    RunsDir,
    find_run,
    open_recipe,
)
from agentrecipes.cli.output import emit_json, figure, note, table
from agentrecipes.components import added_files
from agentrecipes.errors import CheckFailed, RecipeError

if TYPE_CHECKING:
    from agentrecipes.registry.index import Entry
    from agentrecipes.registry.store import Store

PLACE = "A folder, an https address, or what fsspec opens; default: AGENTRECIPES_REGISTRY, else "
From = Annotated[
    str | None, typer.Option("--from", metavar="STORE", help=PLACE + "the shipped registry.")
]
To = Annotated[str, typer.Option("--to", metavar="STORE", help="A folder, or what fsspec opens.")]
Named = Annotated[str, typer.Argument(metavar="NAME[@VERSION]", help="Default: the newest.")]
Sha256 = Annotated[
    str | None, typer.Option("--sha256", metavar="HASH", help="Take exactly this card, or nothing.")
]
Runs = Annotated[
    list[str] | None,
    typer.Option("--run", metavar="RUN", help="Finished runs of the recipe: the card's figures."),
]


class Deed(StrEnum):
    """What ``registry`` can do."""

    SEARCH = "search"
    SHOW = "show"
    VERIFY = "verify"
    INDEX = "index"


Asked = Annotated[
    Deed,
    typer.Argument(help="search words · show a card · verify every hash · index: make it again"),
]
Words = Annotated[
    list[str] | None, typer.Argument(metavar="[WORD|NAME]...", help="Words, or one NAME[@VERSION].")
]


def registry(deed: Asked, words: Words = None, store: From = None, as_json: Json = False) -> None:
    """Look through a registry of recipes, hold it to its hashes, or make its index again."""
    from agentrecipes.registry.store import open_store

    place = open_store(store)
    found = {
        Deed.SEARCH: _search,
        Deed.SHOW: _show,
        Deed.VERIFY: _verify,
        Deed.INDEX: _index,
    }[deed](place, words or [])
    text = found.pop("text")
    if as_json:
        emit_json(found)
    else:
        typer.echo(text)
    if found.get("ok") is False:
        raise typer.Exit(CheckFailed.exit_code)


def push(  # noqa: PLR0913 - a command's parameters are its options
    words: RecipeWords,
    store: To,
    runs: Runs = None,
    profile: Profile = None,
    parts: Parts = None,
    runs_dir: RunsDir = None,
    as_json: Json = False,
) -> None:
    """Put a recipe, its data and its figures into a registry; a version never changes."""
    from agentrecipes.registry.publish import push as put
    from agentrecipes.registry.store import open_store

    recipe = open_recipe(words, profile, parts=parts)
    folders = [find_run(run, runs_dir) for run in runs or []]
    made = put(recipe, open_store(store), folders, parts=added_files())
    if not made.card.results:
        note("the card has no figures: name finished runs of the recipe with --run")
    _answer(made, as_json, f"{made.card.name}@{made.card.version} is in {store}: {made.sha256}")


def pull(
    name: Named,
    store: From = None,
    sha256: Sha256 = None,
    as_json: Json = False,
) -> None:
    """Fetch a recipe to ./NAME/NAME.yaml, every hash checked before anything is placed."""
    from agentrecipes.registry.fetch import pull as fetch
    from agentrecipes.registry.store import open_store

    target = Path(name.partition("@")[0])
    if target.name != str(target):
        raise RecipeError(f"{name!r} is no recipe's name. Write NAME or NAME@VERSION")
    found = fetch(open_store(store), name, target, sha256=sha256)
    for part in found.card.parts:
        note(f"it needs a part that a registry does not carry: {part}; give it with --parts")
    _answer(found, as_json, found.card.command)


def _answer(entry: Entry, as_json: bool, text: str) -> None:
    if as_json:
        emit_json(_outline(entry))
    else:
        typer.echo(text)


def _outline(entry: Entry) -> dict[str, Any]:
    card = entry.card
    return {
        "name": card.name,
        "version": card.version,
        "sha256": entry.sha256,
        "files": {path: file.sha256 for path, file in card.files.items()},
    }


def _search(store: Store, words: Sequence[str]) -> dict[str, Any]:
    from agentrecipes.registry.index import entry, order, read_index

    rows = []
    for name, versions in read_index(store).items():
        version = max(versions, key=order)
        card = entry(store, name, version, sha256=versions[version]).card
        text = f"{name} {card.title} {card.paper or ''}".casefold()
        if all(word.casefold() in text for word in words):
            mean = card.results[0].mean if card.results else None
            rows.append({"name": name, "version": version, "mean": mean, "title": card.title})
    body = [(row["name"], row["version"], row["mean"], str(row["title"])[:80]) for row in rows]
    text = table(["name", "version", "mean", "title"], body) if rows else "nothing was found"
    return {"recipes": rows, "text": text}


def _show(store: Store, words: Sequence[str]) -> dict[str, Any]:
    from agentrecipes.registry.index import find

    if len(words) != 1:
        raise RecipeError("registry show takes one NAME or NAME@VERSION")
    found = find(store, words[0])
    card = found.card
    lines = [f"{card.name}@{card.version}  {found.sha256}", card.title, card.paper or ""]
    for row in card.results:
        spread = " ".join(figure(value) for value in row.values)
        kind = f"{row.split} {row.mode} {row.metric}"
        lines.append(f"{kind}: {figure(row.mean)} over seeds {list(row.seeds)}: {spread}")
    lines += [f"{path}  {file.bytes} bytes" for path, file in card.files.items()]
    lines.append(card.command)
    plain = card.model_dump(mode="json")
    return {**_outline(found), "card": plain, "text": "\n".join(line for line in lines if line)}


def _verify(store: Store, words: Sequence[str]) -> dict[str, Any]:
    from agentrecipes.registry.fetch import verify

    if len(words) > 1:
        raise RecipeError("registry verify takes one NAME or NAME@VERSION, or nothing")
    count, problems = verify(store, words[0] if words else None)
    for problem in problems:
        note(f"error: {problem}")
    wrong = f"{len(problems)} do not hold" if problems else "everything holds"
    text = f"{store.shown}: {count} versions, {wrong}"
    return {"ok": not problems, "versions": count, "problems": problems, "text": text}


def _index(store: Store, words: Sequence[str]) -> dict[str, Any]:
    from agentrecipes.registry.index import rebuild

    if words:
        raise RecipeError("registry index takes no words")
    versions = rebuild(store)
    count = sum(len(each) for each in versions.values())
    return {"recipes": versions, "text": f"{store.shown}: {count} versions"}
