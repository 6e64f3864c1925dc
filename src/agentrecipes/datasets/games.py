"""Text games in a folder: story files, each with what TextWorld wrote about it beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

from agentrecipes.components import Component, FileName, component
from agentrecipes.datasets.reading import SPLITS
from agentrecipes.datasets.shipped import folder
from agentrecipes.errors import RecipeError
from agentrecipes.records import Passage, Task

STORIES = ("*.z8", "*.ulx")
SHIPPED = "textworld"  # the folder of data that comes with the package


@component("dataset")
class Games(Component):
    """Every ``.z8`` and ``.ulx`` in a folder is a task, with the ``.json`` of the same name.

    The folders ``train``, ``dev`` and ``test`` in it say which split a game is in; a game outside
    of them is in all three. The type of a task is the name of the game up to ``_seed``. A game
    that cannot be read is a task that fails when it is opened, with the reason; the others are
    played all the same.
    """

    path: Annotated[str, FileName("data")] | None = None  # a folder; null: the two shipped games

    spoken: ClassVar[bool] = True
    has_corpus: ClassVar[bool] = False
    metrics: ClassVar[tuple[str, ...]] = ("exact_match",)
    symbols: ClassVar[frozenset[str]] = frozenset()
    fields: ClassVar[frozenset[str]] = frozenset({"question", "golden_answers", "type", "file"})

    def tasks(self, split: str) -> Sequence[Task]:
        """The games of a split by name.

        Raises:
            RecipeError: there is no game in the folder.
        """
        return _tasks(self.path or str(folder() / SHIPPED))[split]

    def corpus(self, split: str) -> Sequence[Passage]:
        """There is nothing to search in."""
        return ()


@lru_cache(maxsize=8)
def _tasks(path: str) -> Mapping[str, tuple[Task, ...]]:
    place = Path(path)
    found = {split: [*_stories(place / split), *_stories(place)] for split in SPLITS}
    if not any(found.values()):
        raise RecipeError(f"{path}: no game lies there. Give a folder with .z8 or .ulx files")
    return {
        split: tuple(_task(file, split, alone=file.parent.name == split) for file in files)
        for split, files in found.items()
    }


def _stories(place: Path) -> list[Path]:
    return sorted(file for pattern in STORIES for file in place.glob(pattern))


def _task(file: Path, split: str, *, alone: bool) -> Task:
    """The game as a task; its id says the split where the game is in several."""
    about = _about(file.with_suffix(".json"))
    shared = file.stem if split == "train" else f"{file.stem}@{split}"
    name = f"{split}/{file.stem}" if alone else shared
    data = {"file": str(file), "type": file.stem.partition("_seed")[0], **about}
    question = str(about.get("objective") or f"Play {file.stem} to its end.")
    return Task(name, split, question, ("won",), data)


def _about(file: Path) -> dict[str, Any]:
    """Objective and walkthrough, as far as they are told; opening the game says what is wrong."""
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        walkthrough = told.get("metadata", {}).get("walkthrough")
        about = {"objective": told.get("objective"), "walkthrough": walkthrough}
    except (OSError, ValueError, AttributeError):
        return {}
    fits = {"objective": str, "walkthrough": list}
    return {key: value for key, value in about.items() if isinstance(value, fits[key])}
