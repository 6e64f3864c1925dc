"""What is wrong with a sweep file although each of its fields is what it should be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from agentrecipes.components import build, suggest
from agentrecipes.errors import Problem
from agentrecipes.recipe.load import Recipe
from agentrecipes.recipe.positions import Node
from agentrecipes.recipe.schema import Stage
from agentrecipes.sweeps.marks import at
from agentrecipes.sweeps.schema import Distribution, Objective, SweepFields
from agentrecipes.sweeps.space import Entry, Space

TURNS = "rounds_mean"  # a column of every evaluation
LEAST_SEEDS = 5  # of wilcoxon: with four pairs its smallest p is 1/16, and the fifth is saved
USED = {  # field of sampler or pruner → the names that read it
    ("sampler", "startup"): ("tpe",),
    ("sampler", "population"): ("nsga2",),
    ("pruner", "startup"): ("median",),
    ("pruner", "warmup"): ("median",),
    ("pruner", "reduction"): ("hyperband",),
    ("pruner", "p"): ("wilcoxon",),
}


def judged_stage(objective: Objective, recipe: Recipe) -> Stage | None:
    """The stage whose evaluations count; None where there is none of that name."""
    if objective.stage is None:
        return recipe.stages[-1]
    return next((stage for stage in recipe.stages if stage.name == objective.stage), None)


def metric_names(stage: Stage) -> list[str]:
    """The metrics that an evaluation of the stage has."""
    parts = stage.evaluation.metrics or tuple(
        build("reward", name) for name in stage.environment.metrics
    )
    return [part.part_name for part in parts]


def entry(tree: Node, path: str, fields: Distribution) -> Iterator[Problem]:
    """Problems of one distribution."""
    loc = ("space", path)
    kinds = [fields.float_ is not None, fields.int_ is not None, fields.choice is not None]
    if sum(kinds) != 1:
        hint = "Write one of `float: [low, high]`, `int: [low, high]`, `choice: [a, b]`."
        message = "no distribution stands here" if not any(kinds) else "several stand here"
        yield at(tree, loc, Problem("bad_distribution", "", message, hint))
        return
    if fields.choice is not None:
        for name in ("log", "step"):
            if getattr(fields, name):
                hint = "Leave it out."
                message = f"{name} has no effect on a choice"
                yield at(tree, (*loc, name), Problem("no_effect", "", message, hint), key=True)
        if len({repr(value) for value in fields.choice}) < len(fields.choice):
            message = "a choice stands here twice"
            yield at(tree, (*loc, "choice"), Problem("bad_distribution", "", message, "Keep one."))
        return
    yield from _range(tree, path, fields)


def _range(tree: Node, path: str, fields: Distribution) -> Iterator[Problem]:
    kind = "float" if fields.float_ is not None else "int"
    low, high = fields.float_ or fields.int_ or (0.0, 0.0)
    loc = ("space", path, kind)
    if low >= high:
        message = f"the range ends at {high:g} and begins at {low:g}"
        hint = "Write the lower end first, or set a single value with `set`."
        yield at(tree, loc, Problem("bad_distribution", "", message, hint))
    if fields.log and low <= 0:
        message = f"a logarithmic range begins at {low:g}"
        hint = "Begin above 0, or leave out `log`."
        yield at(tree, loc, Problem("bad_distribution", "", message, hint))
    if fields.log and fields.step is not None:
        message = "step has no effect on a logarithmic range"
        problem = Problem("no_effect", "", message, "Leave out `step` or `log`.")
        yield at(tree, ("space", path, "step"), problem, key=True)
    if kind == "int" and fields.step is not None and fields.step != int(fields.step):
        problem = Problem("bad_distribution", "", "whole numbers have a whole step", "Round it.")
        yield at(tree, ("space", path, "step"), problem)


def conditions(tree: Node, entries: Sequence[Entry]) -> Iterator[Problem]:
    """Problems of the ``when`` of all entries."""
    known = {each.path: each for each in entries}
    for each in entries:
        for key, wanted in each.when.items():
            loc = ("space", each.path, "when", key)
            if key not in known or known[key].kind != "choice":
                choices = [path for path, other in known.items() if other.kind == "choice"]
                message = f"{key!r} is no choice of this space"
                hint = suggest(key, choices)
                yield at(tree, loc, Problem("bad_condition", "", message, hint), key=True)
                continue
            for value in wanted:
                if value not in known[key].choices:
                    message = f"{value!r} is no choice of {key}"
                    hint = suggest(str(value), map(str, known[key].choices))
                    yield at(tree, loc, Problem("bad_condition", "", message, hint))


def taken(tree: Node, space: Space, given: Sequence[str]) -> Iterator[Problem]:
    """Overrides that set what the space asks."""
    fixed = tree.items.get("set")
    names = {text.partition("=")[0] for text in given}
    for each in space.entries:
        if fixed is not None and each.path in fixed.items:
            problem = Problem("no_effect", "", "the space asks for this path", "Keep one of them.")
            yield at(tree, ("set", each.path), problem, key=True)
        if each.path in names:
            message = "the command line sets what the space asks for"
            problem = Problem("no_effect", "", message, "Leave the override out.")
            yield at(tree, ("space", each.path), problem, key=True)


def problems(tree: Node, fields: SweepFields, recipe: Recipe) -> Iterator[Problem]:
    """Problems of the objectives, of the pruner, and of both with the recipe."""
    several = len(fields.objective) > 1
    for index, objective in enumerate(fields.objective):
        listed = isinstance(tree.items["objective"].value, list)
        loc: tuple[Any, ...] = ("objective", index) if listed else ("objective",)
        yield from _objective(tree, loc, objective, recipe=recipe)
    if several and len({each.seeds for each in fields.objective}) > 1:
        problem = Problem("bad_objective", "", "a trial has one number of seeds", "Write it once.")
        yield at(tree, ("objective",), problem)
    if several and fields.pruner.name != "none":
        message = "a study with several objectives cannot end trials early"
        hint = "Write `pruner: none`, or one objective."
        yield at(tree, ("pruner",), Problem("bad_pruner", "", message, hint))
    elif fields.pruner.name != "none":
        yield from _pruner(tree, fields, recipe)
    yield from _unused(tree, fields)
    if fields.storage is not None and fields.storage == recipe.fields.tracking.uri:
        message = "MLflow keeps its runs in this database; its tables and the study's would collide"
        hint = "Give the study a database of its own."
        yield at(tree, ("storage",), Problem("bad_storage", "", message, hint))
    for stage in recipe.stages:
        if stage.trainer.devices * stage.trainer.nodes > 1:
            message = f"stage {stage.name!r} asks for several devices; a trial has one process"
            hint = "Set `trainer.devices: 1` under `set`, and use --workers."
            yield at(tree, ("recipe",), Problem("bad_sweep", "", message, hint))
            break


def _objective(
    tree: Node, loc: tuple[Any, ...], objective: Objective, *, recipe: Recipe
) -> Iterator[Problem]:
    stage = judged_stage(objective, recipe)
    if stage is None:
        message = f"no stage is called {objective.stage!r}"
        hint = suggest(str(objective.stage), [each.name for each in recipe.stages])
        yield at(tree, (*loc, "stage"), Problem("unknown_stage", "", message, hint))
        return
    known = [*metric_names(stage), TURNS]
    if objective.metric not in known:
        message = f"the evaluation has no metric {objective.metric!r}"
        hint = suggest(objective.metric, known)
        yield at(tree, (*loc, "metric"), Problem("unknown_metric", "", message, hint))
    if objective.mode not in stage.evaluation.modes:
        message = f"the recipe does not evaluate in mode {objective.mode!r}"
        hint = f"Known: {', '.join(stage.evaluation.modes)}."
        yield at(tree, (*loc, "mode"), Problem("bad_objective", "", message, hint))
    last = stage is recipe.stages[-1]
    measured = {stage.evaluation.split} | ({"dev", "test"} if last else set())
    if objective.split not in measured:
        message = f"stage {stage.name!r} is not evaluated on {objective.split!r}"
        hint = f"Known: {', '.join(sorted(measured))}."
        yield at(tree, (*loc, "split"), Problem("bad_objective", "", message, hint))
    elif objective.split == "test":
        message = "what is chosen on test cannot be reported on test"
        problem = Problem("test_split", "", message, "Write `split: dev`.", severity="warning")
        yield at(tree, (*loc, "split"), problem)


def _pruner(tree: Node, fields: SweepFields, recipe: Recipe) -> Iterator[Problem]:
    [objective] = fields.objective
    stage = judged_stage(objective, recipe)
    if fields.pruner.name == "wilcoxon":
        if objective.seeds < LEAST_SEEDS:
            message = f"wilcoxon compares seed by seed and cannot decide with {objective.seeds}"
            hint = f"Write `seeds: {LEAST_SEEDS}` or more, or another pruner."
            yield at(tree, ("pruner",), Problem("bad_pruner", "", message, hint))
        return
    if stage is None:
        return
    on_the_way = stage.evaluation.every and stage.evaluation.split == objective.split
    if not on_the_way or stage.algorithm.needs.demonstrations:
        message = f"stage {stage.name!r} has no evaluations on the way for a pruner to read"
        hint = "Judge a collecting stage by its own split, with `evaluation.every` above 0."
        yield at(tree, ("pruner",), Problem("bad_pruner", "", message, hint))


def _unused(tree: Node, fields: SweepFields) -> Iterator[Problem]:
    for (part, name), users in USED.items():
        node = tree.items.get(part)
        chosen = getattr(fields, part).name
        if node is not None and name in node.items and chosen not in users:
            message = f"{name} has no effect on {chosen}"
            yield at(
                tree, (part, name), Problem("no_effect", "", message, "Leave it out."), key=True
            )


def of_the_space(tree: Node, fields: SweepFields, space: Space) -> Iterator[Problem]:
    """Problems of the sampler with the space, and of the number of trials."""
    if fields.sampler.name == "grid":
        for each in space.entries:
            if each.points() is None:
                hint = "Give it a `step`, or write a `choice`."
                problem = Problem("bad_sampler", "", "a grid needs an end to the values", hint)
                yield at(tree, ("space", each.path), problem)
    elif fields.trials is None:
        problem = Problem("missing_key", "", "'trials' is missing", "Write `trials: 20`.")
        yield at(tree, ("trials",), problem)
    if "seed" in {each.path for each in space.entries} and fields.seeds > 1:
        message = "seeds of a trial are counted from the recipe's seed, which is in the space"
        yield at(tree, ("space", "seed"), Problem("bad_sweep", "", message, "Write `seeds: 1`."))
