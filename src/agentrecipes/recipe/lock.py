"""Every input of a run by its hash: recipe, packages, plug-ins, data files, model folders."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path
from typing import Any

from agentrecipes.recipe.draft import RECIPE
from agentrecipes.recipe.load import Recipe
from agentrecipes.recipe.positions import dotted
from agentrecipes.recipe.rules import parts_in
from agentrecipes.recipe.values import file_mark, leaves, names_text, typed_form

PACKAGES = (
    "agentrecipes",
    "torch",
    "lightning",
    "transformers",
    "tokenizers",
    "peft",
    "safetensors",
    "numpy",
    "bm25s",
    "deepspeed",
    "vllm",
)
"""What computes; a program that only shows or stores may be of any version."""

_CHUNK = 1 << 20


def lock(recipe: Recipe, *, extra_files: Sequence[Path] = ()) -> dict[str, Any]:
    """What the recipe's outcome depends on: ``{"inputs": {name: hash or version}, ...}``.

    `extra_files` are inputs that no recipe names: the files of ``--parts``. The seed and the folder
    in which relative paths start are told beside the inputs, and so is who wrote each value; they
    are not compared.
    """
    inputs = {"recipe": recipe.hash, "python": platform.python_version()}
    inputs |= {f"package {name}": found for name, found in _packages()}
    inputs |= {f"plug-in {name}": found for name, found in _plugins()}
    for name, path in _named_paths(recipe):
        inputs |= dict(_hashes(name, path))
    inputs |= dict(_prompts(recipe))
    inputs |= {f"part {path.name}": file_hash(path) for path in extra_files}
    return {
        "recipe": recipe.name,
        "seed": recipe.seed,
        "profile": recipe.profile,
        "folder": str(recipe.folder),
        "inputs": dict(sorted(inputs.items())),
        "origin": dict(recipe.origin),
    }


def compare(lock: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The names of inputs that differ, or that only one of the two has."""
    one, two = lock["inputs"], other["inputs"]
    return [name for name in sorted({*one, *two}) if one.get(name) != two.get(name)]


def file_hash(path: Path) -> str:
    """SHA-256 (hex) of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _packages() -> Iterator[tuple[str, str]]:
    for name in PACKAGES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue


@lru_cache
def _plugins() -> tuple[tuple[str, str], ...]:
    """Distributions that bring parts, with their versions."""
    found = {
        (dist.metadata["Name"], dist.version)
        for dist in distributions()
        for point in dist.entry_points
        if point.group.startswith("agentrecipes.")
    }
    return tuple(sorted(found))


def named_files(recipe: Recipe) -> Iterator[Path]:
    """Each file that the recipe names by a path: data, texts, folders file by file.

    What a name of the hub stands for is not among them, wherever it lies.
    """
    for name, path in _named_paths(recipe):
        if path.is_file():
            yield path
        elif path.is_dir() and (recipe.folder / name).is_dir():
            yield from sorted(file for file in path.rglob("*") if file.is_file())


def _named_paths(recipe: Recipe) -> Iterator[tuple[str, Path]]:
    """What the recipe says, and the file or folder that it means."""
    typed, _ = typed_form(recipe.data, RECIPE, recipe.folder)
    for leaf in leaves(recipe.data, RECIPE):
        mark = file_mark(leaf)
        if mark is None or mark.what == "made" or not isinstance(leaf.value, str):
            continue
        if mark.what == "text":
            if names_text(leaf.value):
                yield leaf.value, recipe.folder / leaf.value
            continue
        path = Path(_value_at(typed, leaf.loc))
        yield leaf.value, _model_folder(path) if mark.what == "hub" else path


def _prompts(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """What judges are asked with, also where a prompt of this package is meant by its name."""
    for stage in recipe.fields.stages:
        for loc, part in parts_in(stage.rewards):
            text = getattr(part, "template", None)
            if isinstance(text, str):
                digest = hashlib.sha256(text.encode()).hexdigest()
                yield f"prompt {stage.name}.{dotted(('rewards', *loc))}", digest


def _value_at(data: Any, loc: Sequence[str | int]) -> Any:
    for step in loc:
        data = data[step]
    return data


def _model_folder(path: Path) -> Path:
    """A folder of that name under ``AGENTRECIPES_MODELS`` comes before all others."""
    models = os.environ.get("AGENTRECIPES_MODELS")
    local = Path(models) / path if models else path
    return local if local.is_dir() else path


def _hashes(name: str, path: Path) -> Iterator[tuple[str, str]]:
    if path.is_file():
        yield f"file {name}", file_hash(path)
    elif path.is_dir():
        for file in sorted(file for file in path.rglob("*") if file.is_file()):
            yield f"file {name}/{file.relative_to(path).as_posix()}", file_hash(file)
    else:
        yield f"file {name}", "from a hub"
