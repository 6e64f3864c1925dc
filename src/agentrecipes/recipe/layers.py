"""From files to one draft: ``extends``, then the file, its profile, and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import agentrecipes
from agentrecipes.components import suggest
from agentrecipes.errors import Problem, RecipeError
from agentrecipes.recipe.draft import TOP_KEYS, Draft, problem_at
from agentrecipes.recipe.overrides import Override, lay_overrides
from agentrecipes.recipe.positions import Loc, Node, Place, moved
from agentrecipes.recipe.source import read

MOST_FILES = 10  # in a chain of `extends`


@dataclass(frozen=True, slots=True)
class Layered:
    """All layers in one draft, and what they were read from."""

    draft: Draft
    overrides: tuple[Override, ...]
    files: tuple[Path, ...]
    shown: str  # the recipe file, as the user wrote it
    folder: Path  # of the recipe file


def layered(path: str | Path, overrides: Sequence[str], profile: str | None) -> Layered:
    """Read and merge everything that makes up the recipe; problems are collected in the draft.

    Raises:
        RecipeError: a file cannot be read at all.
    """
    file, shown = locate(path)
    chain: list[tuple[Path, Node]] = []
    _collect(file, shown, chain)
    draft = Draft()
    for index, (_, layer) in enumerate(chain):
        draft.lay(moved(layer, (), partial(_in_layer, index)), base=True)
    _lay_profile(draft, profile, shown)
    _check_other_profiles(draft, profile)
    typed = lay_overrides(draft, tuple(overrides), layer=MOST_FILES + 1)
    files = tuple(source for source, _ in chain)
    return Layered(draft, tuple(typed), files, shown, file.resolve().parent)


def _in_layer(layer: int, place: Place) -> Place:
    return replace(place, layer=layer)


def recipes_folder() -> Path:
    """Where the shipped recipes are: in the package in a wheel, beside ``src`` in a checkout."""
    package = Path(agentrecipes.__file__).parent
    packaged = package / "_recipes"
    return packaged if packaged.is_dir() else package.parents[1] / "recipes"


def locate(path: str | Path) -> tuple[Path, str]:
    """The file that a path or the bare name of a shipped recipe stands for, and how to show it."""
    file = Path(path)
    bare = len(file.parts) == 1 and not file.suffix
    if file.is_file() or not bare:
        return file, str(path)
    shipped = recipes_folder() / f"{file.name}.yaml"
    if shipped.is_file():
        return shipped, _shown(shipped)
    names = [recipe.stem for recipe in recipes_folder().glob("*.yaml")]
    hint = suggest(file.name, names)
    problem = Problem(
        "missing_file", "", f"no recipe is called {str(path)!r}", hint, file=str(path)
    )
    raise RecipeError([problem])


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _collect(file: Path, shown: str, chain: list[tuple[Path, Node]]) -> None:
    """Put the file and all that it extends into `chain`, the furthest first."""
    layer = read(file, shown)
    chain.insert(0, (file, layer))
    node = layer.items.get("extends")
    if node is None or node.value is None:
        return
    parent, parent_shown = _parent(file, node)
    if any(parent.resolve() == seen.resolve() for seen, _ in chain):
        raise _bad_extends(node, f"{node.value!r} leads back to {shown}", "Break the circle.")
    if len(chain) >= MOST_FILES:
        found = f"more than {MOST_FILES} files extend one another"
        raise _bad_extends(node, found, "Merge some of them.")
    _collect(parent, parent_shown, chain)


def _parent(file: Path, node: Node) -> tuple[Path, str]:
    if not isinstance(node.value, str):
        raise _bad_extends(node, "expected the name of a file", "Write `extends: other.yaml`.")
    beside = file.parent / node.value
    if not Path(node.value).suffix and not beside.is_file():
        beside = recipes_folder() / f"{node.value}.yaml"
    elif not beside.resolve().is_relative_to(file.parent.resolve()):
        found = f"{node.value!r} lies outside of the recipe's folder"
        raise _bad_extends(node, found, "Copy it beside the recipe.", code="outside_folder")
    if not beside.is_file():
        names = [p.name for p in file.parent.glob("*.yaml") if p != file]
        hint = suggest(node.value, names)
        raise _bad_extends(node, f"there is no file {node.value!r}", hint, code="missing_file")
    return beside, _shown(beside)


def _bad_extends(node: Node, message: str, hint: str, *, code: str = "bad_extends") -> RecipeError:
    return RecipeError([problem_at(node.place, ("extends",), Problem(code, "", message, hint))])


def _lay_profile(draft: Draft, profile: str | None, shown: str) -> None:
    if profile is None:
        return
    if profile not in draft.profiles:
        hint = suggest(profile, draft.profiles)
        found = f"no profile is called {profile!r}"
        problem = Problem("unknown_profile", "profiles", found, hint)
        draft.problems.append(problem.at(shown, 1, 1))
        return

    def change(place: Place) -> Place:
        return replace(place, label=f"profile {profile} ({place.label})", layer=MOST_FILES)

    draft.lay(moved(draft.profiles[profile], (), change))


def _check_other_profiles(draft: Draft, profile: str | None) -> None:
    """Misspelt keys and stages of profiles that are not laid now are problems all the same."""
    for name, overlay in draft.profiles.items():
        if name == profile:
            continue
        stages = overlay.items.get("stages")
        inside = stages.items if stages is not None and draft.stages is not None else {}
        for key, node in inside.items():
            if key not in (draft.stages or {}):
                hint, found = suggest(key, draft.stages or {}), f"no stage is called {key!r}"
                draft.note(
                    _at(node, ("profiles", name, "stages", key)),
                    Problem("unknown_stage", "", found, hint),
                    key=True,
                )
        for key, node in overlay.items.items():
            if key not in TOP_KEYS:
                hint, found = suggest(key, TOP_KEYS), f"no field is called {key!r}"
                draft.note(
                    _at(node, ("profiles", name, key)),
                    Problem("unknown_key", "", found, hint),
                    key=True,
                )


def _at(node: Node, path: Loc) -> Node:
    return Node(node.value, node.place, path, node.key)
