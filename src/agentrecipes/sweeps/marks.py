"""Where in a sweep file a problem stands."""

from __future__ import annotations

from agentrecipes.errors import Problem
from agentrecipes.recipe.draft import problem_at
from agentrecipes.recipe.positions import Loc, Node, lookup


def at(tree: Node, loc: Loc, problem: Problem, *, key: bool = False) -> Problem:
    """The problem at `loc`, or as near to it as the file goes; `key` points at the key there."""
    for length in range(len(loc), -1, -1):
        node = lookup(tree, loc[:length])
        if node is not None:
            place = node.key if key and node.key and length == len(loc) else node.place
            return problem_at(place, loc, problem)
    return problem_at(tree.place, loc, problem)
