"""A recipe while it is put together: its top level, and its stages by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from agentrecipes.components import suggest
from agentrecipes.errors import Problem
from agentrecipes.recipe.merge import merge
from agentrecipes.recipe.positions import Loc, Node, Place, dotted, lookup, moved, plain
from agentrecipes.recipe.schema import RecipeFields, Stage
from agentrecipes.recipe.shape import Shape, fields
from agentrecipes.recipe.wording import shown

STAGE = Shape(Stage)
RECIPE = Shape(RecipeFields)
STAGE_KEYS = frozenset(fields(Stage)) - {"name"}
OWN_KEYS = frozenset(fields(RecipeFields)) - {"stages"}  # of the recipe, not of its stages
TOP_KEYS = STAGE_KEYS | OWN_KEYS | {"stages", "profiles", "extends"}
_STAGE_NAME = re.compile(r"[A-Za-z0-9_\-]+")


@dataclass(slots=True)
class Draft:
    """What the layers read so far add up to. Problems are collected, not raised."""

    top: dict[str, Node] = field(default_factory=dict)
    stages: dict[str, Node] | None = None  # None: no `stages` was written
    profiles: dict[str, Node] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def note(self, node: Node, problem: Problem, *, key: bool = False) -> None:
        """Collect a problem at a node, or at the key that leads to it."""
        place = node.key if key and node.key else node.place
        self.problems.append(problem_at(place, node.path, problem))

    def lay(self, layer: Node, *, base: bool = False) -> None:
        """Lay a layer over what is there; a `base` layer may list stages, and hold profiles."""
        for key, node in layer.items.items():
            if key not in TOP_KEYS:
                hint = suggest(key, TOP_KEYS)
                self.note(
                    node, Problem("unknown_key", "", f"no field is called {key!r}", hint), key=True
                )
            elif key == "stages":
                self._lay_stages(node, base=base)
            elif key in ("profiles", "extends"):
                if not base:
                    hint = "Write it at the top of the file."
                    self.note(
                        node,
                        Problem("unknown_key", "", f"{key} may not stand here", hint),
                        key=True,
                    )
            else:
                self.top[key] = _over(self.top.get(key), node, top_shape(key))
        if base:
            self._keep_profiles(layer.items.get("profiles"))

    def _keep_profiles(self, node: Node | None) -> None:
        if node is None or node.value is None:
            return
        if not isinstance(node.value, dict):
            hint = "Write `NAME: {field: value}` under it."
            self.note(
                node,
                Problem(
                    "wrong_type", "", f"expected a mapping, but got {shown(plain(node))}", hint
                ),
            )
        for name, overlay in node.items.items():
            if isinstance(overlay.value, dict):
                older = self.profiles.get(name)
                self.profiles[name] = merge(older, overlay, None) if older else overlay
            else:
                found = f"expected a mapping of fields, but got {shown(plain(overlay))}"
                self.note(overlay, Problem("wrong_type", "", found, "Write `{field: value}`."))

    def _lay_stages(self, node: Node, *, base: bool) -> None:
        if isinstance(node.value, list) and base:
            self.stages = self._named(node)
        elif isinstance(node.value, dict) and (self.stages is not None or not base):
            for name, overlay in node.items.items():
                self._lay_stage(name, overlay)
        else:
            self.stages = self.stages or {}
            form = "a list of stages" if base else "a mapping from stage name to its fields"
            hint = (
                "Write `- name: …` for each." if base else "Write `stages: {NAME: {field: value}}`."
            )
            self.note(
                node,
                Problem("wrong_type", "", f"expected {form}, but got {shown(plain(node))}", hint),
            )

    def _lay_stage(self, name: str, overlay: Node) -> None:
        stages = self.stages or {}
        if name not in stages:
            hint = (
                suggest(name, stages) if stages else "The recipe has no `stages`: leave them out."
            )
            self.note(
                overlay,
                Problem("unknown_stage", "", f"no stage is called {name!r}", hint),
                key=True,
            )
        elif not isinstance(overlay.value, dict):
            found = f"expected a mapping of fields, but got {shown(plain(overlay))}"
            self.note(overlay, Problem("wrong_type", "", found, "Write `{field: value}`."))
        elif "name" in overlay.value:
            hint = "Leave it out."
            self.note(
                overlay.value["name"],
                Problem("no_effect", "", "a stage keeps its name", hint),
                key=True,
            )
        else:
            stages[name] = merge(stages[name], self._fields(overlay), STAGE)

    def _fields(self, stage: Node) -> Node:
        """The stage without ``schedule``: it holds schedules, and is none itself."""
        if (node := stage.items.get("schedule")) is not None:
            hint = suggest("schedule", STAGE_KEYS)
            self.note(
                node, Problem("unknown_key", "", "no field is called 'schedule'", hint), key=True
            )
        return replace(stage, value={k: v for k, v in stage.items.items() if k != "schedule"})

    def _named(self, node: Node) -> dict[str, Node]:
        """Stages by their name, in order, each without it."""
        stages: dict[str, Node] = {}
        for entry in node.value:
            name = entry.items.get("name")
            if not isinstance(entry.value, dict):
                found = f"expected a mapping of fields, but got {shown(plain(entry))}"
                self.note(
                    entry, Problem("wrong_type", "", found, "Write `- name: …` and its fields.")
                )
            elif name is None:
                missing = Node(None, entry.place, (*entry.path, "name"))
                self.note(
                    missing, Problem("missing_key", "", "the stage has no name", "Write `name: …`.")
                )
            elif not isinstance(name.value, str) or not _STAGE_NAME.fullmatch(name.value):
                found = f"expected a name, but got {shown(plain(name))}"
                self.note(
                    name, Problem("wrong_value", "", found, "Use letters, digits, _ and - only.")
                )
            elif name.value in stages:
                found = f"another stage is called {name.value!r} too"
                self.note(
                    name, Problem("duplicate_name", "", found, "Give each stage a name of its own.")
                )
            else:
                own = {key: item for key, item in entry.value.items() if key != "name"}
                stage = moved(replace(entry, value=own), ("stages", name.value))
                stages[name.value] = self._fields(stage)
        if not node.value:
            hint = "Write at least one, or leave `stages` out."
            self.note(node, Problem("out_of_range", "", "the list of stages is empty", hint))
        return stages

    def at(self, loc: Loc) -> Node | None:
        """The value at a path as the command line writes it; in a stage also what it inherits."""
        if loc[0] == "stages":
            stage = (self.stages or {}).get(str(loc[1])) if len(loc) > 1 else None
            found = lookup(stage, loc[2:]) if stage is not None else None
            return found if found is not None or len(loc) < 3 else self.at(loc[2:])
        node = self.top.get(str(loc[0]))
        return lookup(node, loc[1:]) if node is not None else None


def top_shape(key: str) -> Shape | None:
    """The shape of a field at the top level."""
    return (fields(Stage) if key in STAGE_KEYS else fields(RecipeFields)).get(key)


def _over(base: Node | None, over: Node, shape: Shape | None) -> Node:
    return over if base is None else merge(base, over, shape)


def problem_at(place: Place | None, loc: Sequence[str | int], problem: Problem) -> Problem:
    """The problem with its place; one that the command line brought names the override."""
    problem = replace(problem, path=dotted(loc))
    if place is None:
        return problem
    if place.typed:
        return replace(problem, message=f"{problem.message} (in {place.label})")
    return problem.at(place.file, place.line, place.column)
