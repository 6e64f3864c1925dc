"""Small parts for the reader to find, and recipes to find them in."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from agentrecipes import components

HEAD = "from agentrecipes.components import *\nfrom agentrecipes.components import FileName\n"
PARTS = {
    "toy_room": """
        from typing import Annotated, Any
        from pydantic import Field

        @component("environment")
        class ToyRoom(Component):
            dataset: Annotated[Any, PartOf("dataset"), Field(validate_default=True)] = "toy_list"
            max_turns: Annotated[int, Field(ge=1)] = 3
            prompt: Annotated[str | None, FileName("text")] = None
            size: int | str = 1
    """,
    "toy_list": """
        from typing import Annotated, ClassVar

        @component("dataset")
        class ToyList(Component):
            path: Annotated[str | None, FileName("data")] = None
            tags: frozenset[str] = frozenset()
            fields: ClassVar[frozenset[str]] = frozenset({"question", "golden_answers"})
    """,
    "toy_torn": """
        @component("dataset")
        class ToyTorn(Component):
            @property
            def fields(self):
                raise ValueError("line 3 is no JSON.")
    """,
    "toy_hit": """
        from typing import ClassVar

        @component("reward")
        class ToyHit(Component):
            reads: ClassVar[frozenset[str]] = frozenset({"golden_answers"})
            strict: bool = True
    """,
    "toy_hops": """
        from typing import ClassVar

        @component("reward")
        class ToyHops(Component):
            reads: ClassVar[frozenset[str]] = frozenset({"golden_answer"})
    """,
    "toy_cost": """
        from agentrecipes.errors import Problem

        @component("reward")
        class ToyCost(Component):
            free: int = 0

            def rules(self, stage):
                if self.free > stage.rollout.tasks:
                    yield Problem("too_free", "free", "more is free than there is", "Write less.")
    """,
    "toy_asked": """
        from typing import Annotated, Any

        @component("reward")
        class ToyAsked(Component):
            judge: Annotated[Any, PartOf("judge")]
    """,
    "toy_all": """
        from typing import Annotated, Any

        @component("reward")
        class ToyAll(Component):
            of: tuple[Annotated[Any, PartOf("reward")], ...]
    """,
    "toy_judge": """
        @component("judge")
        class ToyJudge(Component):
            key: str
    """,
    "toy_copy": """
        from agentrecipes.algorithms.protocol import Needs

        @component("algorithm")
        class ToyCopy(Component):
            needs = property(lambda self: Needs(demonstrations=True))
    """,
    "toy_try": """
        from agentrecipes.algorithms.protocol import Needs

        @component("algorithm")
        class ToyTry(Component):
            rate: float = 0.5
            needs = property(lambda self: Needs(value=True))
    """,
    "toy_bring": """
        from typing import Any, ClassVar, Mapping
        from agentrecipes.algorithms.protocol import Needs

        @component("algorithm")
        class ToyBring(Component):
            needs = property(lambda self: Needs(groups=True))
            stage_defaults: ClassVar[Mapping[str, Any]] = {
                "rollout": {"temperature": 0.7, "top_p": 0.9},
                "rewards": ["toy_cost"],
            }
    """,
    "toy_shown": """
        @component("demonstrations")
        class ToyShown(Component):
            count: int = 10
    """,
    "toy_net": """
        @component("model")
        class ToyNet(Component):
            path: str = "somebody/net"
            width: int = 8
    """,
}


@pytest.fixture(scope="session")
def toys(tmp_path_factory):
    """The classes of the small parts, imported once from a folder as ``--parts`` does."""
    folder = tmp_path_factory.mktemp("parts")
    for name, code in PARTS.items():
        (folder / f"{name}.py").write_text(HEAD + textwrap.dedent(code), encoding="utf-8")
    known = dict(components._found)
    components.add_folder(folder)
    added = {key: part for key, part in components._found.items() if key not in known}
    for key in added:
        del components._found[key]
    return added


@pytest.fixture(autouse=True)
def toys_are_known(toys):
    """The small parts are known here and nowhere else."""
    components._found.update(toys)
    yield
    for key in toys:
        components._found.pop(key, None)


TOY = """\
name: toy
model: toy_net
environment: toy_room
rewards: [toy_hit]
"""
ONE = TOY + "algorithm: toy_try\niterations: 10\n"
TWO = (
    TOY
    + """\
rollout: {tasks: 4}
demonstrations: toy_shown
stages:
  - name: copy
    algorithm: toy_copy
    steps: 20
  - name: try
    algorithm: {name: toy_try, rate: 0.25}
    iterations: 10
"""
)


@pytest.fixture
def write(tmp_path):
    """Write a recipe, ``recipe.yaml`` unless named otherwise, and return its path."""

    def written(text, name="recipe.yaml") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return written
