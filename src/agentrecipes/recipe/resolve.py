"""From a draft to typed stages: what the top level and the parts bring, schedules, types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agentrecipes import schedules
from agentrecipes.components import Component, build, find
from agentrecipes.errors import Problem
from agentrecipes.recipe.draft import STAGE, STAGE_KEYS, Draft, problem_at
from agentrecipes.recipe.effects import pruned
from agentrecipes.recipe.merge import merge, spell_out
from agentrecipes.recipe.positions import Loc, Node, Place, lookup, plain, put, written
from agentrecipes.recipe.presets import with_preset
from agentrecipes.recipe.problems import from_pydantic, spot
from agentrecipes.recipe.schema import Stage
from agentrecipes.recipe.shape import Leaf, Shape
from agentrecipes.recipe.values import Paths, anchored, leaves, typed_form, value_problems
from agentrecipes.recipe.varying import at_start, extreme_problems, misplaced, without

_BRINGING: tuple[Loc, ...] = (
    ("algorithm",),
    ("environment",),
    ("curriculum",),
    ("demonstrations",),
    ("rollout", "sampling"),
    ("rollout", "replay"),
    ("rollout", "engine"),
)
"""The parts of a stage whose `stage_defaults` count; of two that bring the same, the first."""


MOST = 16  # iterations, beside the first, in which the rules of parts are asked


@dataclass(frozen=True, slots=True)
class Resolved:
    """A stage: its merged tree, and, where nothing is wrong, its typed form and its plain one."""

    name: str
    tree: Node
    problems: tuple[Problem, ...]
    single: bool  # the recipe has no `stages`: this is its top level
    needs: Any = None  # the algorithm's; None where that part is wrong
    stage: Stage | None = None  # schedules at iteration 0
    data: Mapping[str, Any] | None = None  # every field spelled out, schedules kept
    later: tuple[Stage, ...] = ()  # where schedules have their other extremes


def stages_of(draft: Draft, paths: Paths) -> list[Resolved]:
    """Every stage of the draft, in order."""
    top = Node({k: v for k, v in draft.top.items() if k in STAGE_KEYS}, Place("top level"))
    if draft.stages is None:
        algorithm = draft.top.get("algorithm")
        name = (algorithm.name or algorithm.value) if algorithm is not None else None
        name = name if isinstance(name, str) else "train"
        return [_resolved(name, top, paths, single=True)]
    return [
        _resolved(name, _over_top(top, own, name), paths, single=False)
        for name, own in draft.stages.items()
    ]


def _over_top(top: Node, own: Node, name: str) -> Node:
    merged = merge(top, own, STAGE)
    return Node(merged.value, own.place, ("stages", name), own.key)


def _resolved(name: str, tree: Node, paths: Paths, *, single: bool) -> Resolved:
    tree, unknown = with_preset(tree)
    tree = spell_out(_with_brought(spell_out(tree, STAGE)), STAGE)
    needs = _needs(tree)
    if needs is not None:
        tree = pruned(tree, needs, single=single)
    tree = anchored(tree, leaves(plain(tree), STAGE), paths)
    wrong = list(misplaced(tree, plain(tree)))
    problems = unknown + [problem for _, problem in wrong]
    tree = without(tree, [loc for loc, _ in wrong])
    data = plain(tree)
    found = list(schedules.find(data))
    start = at_start(tree, found)
    _, more = typed_stage(name, start, paths)
    told = {problem.path for problem in problems}
    problems += [problem for problem in more if problem.path not in told]
    if not more and found:
        problems += extreme_problems(tree, data, lambda trial: typed_stage(name, trial, paths)[1])
    if problems:
        return Resolved(name, tree, tuple(problems), single, needs)
    spelled = _spelled_out(name, data, paths)
    turns = {turn for _, schedule in found for turn in schedules.turning(schedule)} - {0}
    first, *later = (at_iteration(spelled, i, paths.folder) for i in (0, *sorted(turns)[:MOST]))
    return Resolved(name, tree, (), single, needs, first, spelled, tuple(later))


def typed_stage(name: str, tree: Node, paths: Paths) -> tuple[Stage | None, list[Problem]]:
    """The stage that a tree without schedules describes, or everything that is wrong with it."""
    data = plain(tree)
    found = leaves(data, STAGE)
    problems = _value_problems(tree, found, paths)
    typed, _ = typed_form(data, STAGE, paths.folder)
    try:
        stage = Stage.model_validate({**typed, "name": name})
    except ValidationError as error:
        places = {problem.path for problem in problems}
        more = [p for p in from_pydantic(error, tree, STAGE) if p.path not in places]
        return None, problems + [_for_all(p, name) for p in more]
    return (None if problems else stage), problems


def _value_problems(tree: Node, found: list[Leaf], paths: Paths) -> list[Problem]:
    return [
        spot(tree, STAGE, leaf.loc).problem(problem)
        for leaf, problem in value_problems(tree, found, paths)
    ]


def _for_all(problem: Problem, name: str) -> Problem:
    """A field that the stage lacks is best written once, at the top level."""
    head = f"stages.{name}."
    key = problem.path.removeprefix(head)
    if problem.code == "missing_key" and problem.path.startswith(head) and key in STAGE_KEYS:
        where = Place("", problem.file, 1, 1)
        return problem_at(where, (key,), problem)
    return problem


def _spelled_out(name: str, data: Any, paths: Paths) -> dict[str, Any]:
    """Every field of the stage, with what stands for itself in the recipe as it was written."""
    typed, changed = typed_form(schedules.resolve(data, 0), STAGE, paths.folder)
    stage = Stage.model_validate({**typed, "name": name})
    raw, place = written(data, Place("recipe")), Place("recipe")
    spelled = written(stage.dump(), place)
    for loc in changed:
        spelled = put(spelled, loc, lookup(raw, loc))
    for loc, schedule in schedules.find(data):
        node = lookup(spelled, loc)
        fractions = node is not None and isinstance(node.value, float)
        kept = schedules.in_fractions(schedule) if fractions else schedule
        spelled = put(spelled, loc, written(kept, place))
    result: dict[str, Any] = plain(spelled)
    return result


def at_iteration(data: Mapping[str, Any], iteration: int, folder: Path) -> Stage:
    """The typed stage with its schedules as they are in an iteration."""
    typed, _ = typed_form(schedules.resolve(data, iteration), STAGE, folder)
    return Stage.model_validate(typed)


def _needs(tree: Node) -> Any:
    node = tree.items.get("algorithm")
    if node is None:
        return None
    try:
        part = build("algorithm", schedules.resolve(plain(node), 0))
    except (ValueError, KeyError, TypeError):  # reported when the stage is built
        return None
    return getattr(part, "needs", None)


def _with_brought(tree: Node) -> Node:
    """The stage laid over what its parts bring; a brought reward stands beside the recipe's own."""
    for loc in _BRINGING:
        part = _part_class(tree, loc)
        if part is None or not part.stage_defaults:
            continue
        brought = written(part.stage_defaults, Place(f"brought by {part.part_name}"))
        brought = spell_out(brought, STAGE)
        rewards = _all_rewards(tree, brought)
        tree = merge(brought, tree, STAGE)
        if rewards is not None:
            tree = put(tree, ("rewards",), rewards)
    return tree


def _all_rewards(tree: Node, brought: Node) -> Node | None:
    own, more = tree.items.get("rewards"), brought.items.get("rewards")
    if own is None or more is None or not isinstance(own.value, list):
        return None
    names = {entry.name for entry in own.value}
    added = [entry for entry in more.value if entry.name not in names]
    return Node([*own.value, *added], own.place, own.path, own.key)


def _part_class(tree: Node, loc: Loc) -> type[Component] | None:
    node, shape = lookup(tree, loc), _shape(loc)
    if node is None or shape is None or shape.kind is None or node.name is None:
        return None
    try:
        return find(shape.kind, node.name)
    except KeyError:
        return None


def _shape(loc: Loc) -> Shape | None:
    shape: Shape | None = STAGE
    for step in loc:
        shape = shape.entry(str(step), None) if shape is not None else None
    return shape
