"""Fields that mean nothing in some stages: a problem where written, dropped where inherited."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentrecipes.errors import Problem
from agentrecipes.recipe.draft import STAGE
from agentrecipes.recipe.positions import Loc, Node, lookup, plain, put
from agentrecipes.recipe.problems import spot

READING: dict[Loc, str] = {
    ("steps",): "Write `iterations: N`.",
    ("demonstrations",): "Leave it out, or move it to a stage that imitates.",
    (
        "trainer",
        "rows_per_step",
    ): "Leave it out; `rollout.tasks` and `rollout.group_size` count here.",
    ("tripwires", "dead_type"): "Move it to a stage that imitates.",
}
"""What only an algorithm that reads data looks at, and what to write instead elsewhere."""

COLLECTING: dict[Loc, str] = {
    ("iterations",): "Write `steps: N`.",
    ("trainer", "minibatches"): "Leave it out; `trainer.rows_per_step` counts here.",
    ("trainer", "epochs"): "Leave it out; `steps` counts here.",
    ("evaluation", "every"): "Leave it out: such a stage is evaluated before and after.",
    ("tripwires", "no_signal"): "Move it to a stage that collects.",
    ("tripwires", "constant_reward"): "Move it to a stage that collects.",
    ("tripwires", "gaming"): "Move it to a stage that collects.",
    ("tripwires", "collapse"): "Move it to a stage that collects.",
}
"""What only an algorithm that collects trajectories looks at."""

VALUE: dict[Loc, str] = {("optimizer", "value_learning_rate"): "Leave it out."}
"""What only an algorithm with a value head looks at."""


def without_effect(needs: Any) -> dict[Loc, tuple[str, str]]:
    """The fields that mean nothing to an algorithm: why, and what to write instead."""
    idle: dict[Loc, tuple[str, str]] = {}
    reads = bool(getattr(needs, "demonstrations", False))
    why = "reads data" if reads else "collects trajectories"
    idle |= {loc: (why, hint) for loc, hint in (COLLECTING if reads else READING).items()}
    if not getattr(needs, "value", False):
        idle |= {loc: ("has no value head", hint) for loc, hint in VALUE.items()}
    return idle


def pruned(tree: Node, needs: Any, *, single: bool) -> Node:
    """The stage without what it merely inherits and what means nothing to its algorithm."""
    for loc in without_effect(needs):
        node = lookup(tree, loc)
        if node is not None and not _meant(tree, node, single=single):
            tree = put(tree, loc, None)
    return tree


def idle_problems(tree: Node, needs: Any, *, algorithm: str, single: bool) -> Iterator[Problem]:
    """Fields that are written in the stage and mean nothing to its algorithm."""
    for loc, (why, hint) in without_effect(needs).items():
        node = lookup(tree, loc)
        if node is None or not _meant(tree, node, single=single) or plain(node) == _default(loc):
            continue
        found = f"{loc[-1]} has no effect here: {algorithm} {why}"
        at = spot(tree, STAGE, loc)
        yield at.problem(Problem("no_effect", "", found, hint), key=True)


def is_own(node: Node, *, single: bool) -> bool:
    """Whether the stage itself writes a value; a recipe without `stages` is its only stage."""
    return single or node.path[:1] == ("stages",)


def _meant(tree: Node, node: Node, *, single: bool) -> bool:
    """Whether the stage writes it beside or after its algorithm.

    What an earlier layer wrote for another algorithm is inherited: a profile, a sweep or the
    command line may change the algorithm alone.
    """
    algorithm = lookup(tree, ("algorithm", "name"))
    later = algorithm is None or node.place.layer >= algorithm.place.layer
    return later and is_own(node, single=single)


def _default(loc: Loc) -> Any:
    shape, default = STAGE, None
    for step in loc:
        inside = shape.entry(str(step), None)
        if inside is None:
            return None
        shape, default = inside, inside.default
    return default
