"""A recipe, its data and its figures into a store."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import agentrecipes
from agentrecipes.errors import RecipeError
from agentrecipes.recipe.load import Recipe
from agentrecipes.recipe.lock import lock, named_files
from agentrecipes.recipe.overrides import LABEL
from agentrecipes.registry.card import MOST_BYTES, Card, File, Result, plain_path, sha256_of
from agentrecipes.registry.index import Entry, add
from agentrecipes.registry.store import Store

LOCK = "recipe.lock"


def push(
    recipe: Recipe, store: Store, runs: Sequence[Path] = (), *, parts: Sequence[Path] = ()
) -> Entry:
    """Put a recipe into a store, with the figures of `runs` of it; what was put there.

    The files are the recipe as it was written (as it was resolved, where a profile or the command
    line changed it), those that it extends, its data, and its lock.

    Raises:
        RecipeError: a run is of another recipe or did not finish; a file lies outside of the
            recipe's folder, or is too large to share.
        CheckFailed: the store has this version with other content.
    """
    summaries = [_summary(run, recipe) for run in runs]
    files = dict(_files(recipe))
    files[LOCK] = _lock_of(recipe, parts)
    total = sum(len(data) for data in files.values())
    if total > MOST_BYTES:
        largest = max(files, key=lambda path: len(files[path]))
        raise RecipeError.about(
            "too_large",
            f"its files have {total} bytes, over {MOST_BYTES}",
            f"The largest is {largest!r}: share data and models through a hub.",
        )
    card = Card(
        name=recipe.name,
        version=recipe.fields.version,
        title=_title(files[f"{recipe.name}.yaml"].decode()),
        paper=recipe.fields.paper,
        recipe_hash=recipe.hash,
        package=agentrecipes.__version__,
        requires=recipe.fields.requires,
        parts={path.name: sha256_of(path.read_bytes()) for path in parts},
        command=f"agentrecipes run {recipe.name}/{recipe.name}.yaml",
        wall_seconds=tuple(float(summary["wall_seconds"]) for summary in summaries),
        results=tuple(_results(summaries)),
        files={
            path: File(sha256=sha256_of(data), bytes=len(data))
            for path, data in sorted(files.items())
        },
    )
    for data in files.values():
        store.write(f"files/{sha256_of(data)}", data)
    return add(store, card)


def _files(recipe: Recipe) -> Iterator[tuple[str, bytes]]:
    """Path in the bundle → content, the lock aside."""
    written = recipe.files[-1].read_bytes()
    if recipe.profile is not None or LABEL in recipe.origin.values():
        written = recipe.to_yaml().encode()
    else:
        for path in recipe.files[:-1]:
            yield _inside(path, recipe.folder), path.read_bytes()
    yield f"{recipe.name}.yaml", written
    for path in named_files(recipe):
        yield _inside(path, recipe.folder), path.read_bytes()


def _inside(path: Path, folder: Path) -> str:
    """A file's path in the bundle: the one that it has below the recipe's folder."""
    relative = os.path.relpath(path.resolve(), folder.resolve())
    try:
        return plain_path(Path(relative).as_posix())
    except ValueError:
        raise RecipeError.about(
            "outside",
            f"the recipe needs {str(path)!r}, which lies outside of its folder",
            "Put it beside the recipe and name it by a relative path.",
        ) from None


def _lock_of(recipe: Recipe, parts: Sequence[Path]) -> bytes:
    """The recipe's lock without what belongs to this machine."""
    locked = lock(recipe, extra_files=parts)
    kept = {key: locked[key] for key in ("recipe", "seed", "profile", "inputs")}
    return (json.dumps(kept, indent=2, sort_keys=True) + "\n").encode()


def _title(text: str) -> str:
    """The recipe's first comment in one line, up to its commands."""
    said: list[str] = []
    for line in text.splitlines():
        words = line.removeprefix("#").strip()
        if not line.startswith("#") or words.startswith("agentrecipes "):
            break
        said.append(words)
    return " ".join(said)


def _summary(run: Path, recipe: Recipe) -> dict[str, Any]:
    """What a finished run of this recipe says of itself."""
    path = run / "summary.json"
    summary: dict[str, Any] = json.loads(path.read_bytes()) if path.is_file() else {}
    if summary.get("status") != "finished":
        raise RecipeError.about(
            "unfinished", f"the run {run.name!r} did not finish", "Name finished runs."
        )
    if summary["recipe_hash"] != recipe.hash:
        raise RecipeError.about(
            "other_recipe",
            f"the run {run.name!r} is of another recipe ({summary['recipe_hash'][:12]}, "
            f"not {recipe.hash[:12]})",
            "Run this recipe, or push the recipe of that run: its recipe.yaml.",
        )
    return summary


def _results(summaries: Sequence[Mapping[str, Any]]) -> Iterator[Result]:
    """The last figures of each kind on the test split, over the runs' seeds."""
    kinds: dict[tuple[str, ...], list[tuple[int, float, int]]] = {}
    for summary in summaries:
        last = {
            (row["stage"], row["split"], row["mode"], row["metric"]): row
            for row in summary["evaluations"]
            if row["split"] == "test"
        }
        for kind, row in last.items():
            found = (int(summary["seed"]), float(row["value"]), int(row["tasks"]))
            kinds.setdefault(kind, []).append(found)
    for (stage, split, mode, metric), rows in kinds.items():
        values = tuple(value for _, value, _ in rows)
        yield Result(
            stage=stage,
            split=split,
            mode=mode,
            metric=metric,
            tasks=rows[0][2],
            seeds=tuple(seed for seed, _, _ in rows),
            values=values,
            mean=sum(values) / len(values),
        )
