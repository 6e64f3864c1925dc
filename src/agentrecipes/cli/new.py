"""``new``: a starter recipe, or a small plug-in package, ready to change."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from agentrecipes.cli.arguments import Json
from agentrecipes.cli.output import emit_json
from agentrecipes.errors import RecipeError

Name = Annotated[str, typer.Argument(help="The recipe's or the package's name.")]
Plugin = Annotated[
    bool, typer.Option("--plugin", help="Make a plug-in package with one reward and its test.")
]

RECIPE = """\
# {name}: a tiny model learns to search in a generated world. Minutes on a laptop, no download.
#   agentrecipes check {name}.yaml
#   agentrecipes run {name}.yaml
name: {name}
seed: 0
model: tiny                             # or {{name: hf, path: FOLDER-OR-HUB-NAME}}
environment:                            # what the agent acts in: agentrecipes list environment
  name: search
  dataset: world
  retriever: {{name: bm25, top_k: 2}}
  protocol: search_tags
  max_turns: 5
rewards:                                # their weighted sum is the return: agentrecipes list reward
  - exact_match
rollout: {{tasks: 16, group_size: 8, tokens_per_turn: 64}}
stages:
  - name: imitate                       # learn to act from an oracle's transcripts
    algorithm: sft
    demonstrations: {{name: scripted, count: 3000}}
    steps: 1700
    optimizer: {{learning_rate: 4e-3, decay: cosine}}
  - name: reinforce                     # get better by trial: agentrecipes list algorithm
    algorithm: grpo
    iterations: 50
    optimizer: {{learning_rate: 6e-4, decay: linear}}
evaluation: {{every: 10, tasks: 100}}
"""

PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{dashed}"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["agentrecipes"]

# One line per part: its name, which is the name of its file, and where it is.
[project.entry-points."agentrecipes.reward"]
{package}_brevity = "{package}.{package}_brevity:Brevity"

[tool.hatch.build.targets.wheel]
packages = ["src/{package}"]
"""

REWARD = '''\
"""A reward for short answers."""

from __future__ import annotations

from typing import ClassVar

from agentrecipes.components import Component, component
from agentrecipes.rewards.protocol import View


@component("reward")
class Brevity(Component):
    """1.0 for an answer of at most `words` words, else `words` over their number."""

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset()

    words: int = 5  # an answer this long still scores 1.0

    def score(self, view: View) -> float | None:
        """A float in [0, 1]."""
        if not view.answer:
            return None
        return min(1.0, self.words / len(view.answer.split()))
'''

TEST = """\
from agentrecipes.components import find
from agentrecipes.records import Stop, Task
from agentrecipes.rewards.protocol import View


def view(answer):
    task = Task("1", "train", "Where?", ("Rome",))
    return View(task, (), (), (), (), answer=answer, stop=Stop.ANSWERED)


def test_the_part_is_found_by_its_name():
    assert find("reward", "{package}_brevity").part_name == "{package}_brevity"


def test_a_long_answer_scores_less():
    part = find("reward", "{package}_brevity")(words=2)
    assert part.score(view("Rome")) == 1.0
    assert part.score(view("Rome is it then")) == 0.5  # 2 words of 4


def test_no_answer_is_null():
    assert find("reward", "{package}_brevity")().score(view(None)) is None
"""


def new(name: Name, plugin: Plugin = False, as_json: Json = False) -> None:
    """Write a starter recipe, or with --plugin a small package that adds a part."""
    if re.fullmatch(r"[a-z][a-z0-9_\-]*", name) is None:
        raise RecipeError(f"{name!r} is no name: small letters, digits, '_' and '-' make one")
    files = plugin_files(name) if plugin else {f"{name}.yaml": RECIPE.format(name=name)}
    write_new(files)
    if as_json:
        emit_json({"name": name, "files": sorted(files)})
        return
    for path in sorted(files):
        typer.echo(f"wrote {path}")
    then = f"pip install -e {name} && pytest {name}" if plugin else f"agentrecipes run {name}.yaml"
    typer.echo(f"next: {then}")


def plugin_files(name: str) -> dict[str, str]:
    """Path → text of a plug-in package in a folder called `name`."""
    package = name.replace("-", "_")
    words = {"dashed": name.replace("_", "-"), "package": package}
    source = f"{name}/src/{package}"
    return {
        f"{name}/pyproject.toml": PYPROJECT.format(**words),
        f"{source}/__init__.py": "",
        f"{source}/{package}_brevity.py": REWARD,
        f"{name}/tests/test_{package}_brevity.py": TEST.format(**words),
    }


def write_new(files: dict[str, str]) -> None:
    """Write the files; nothing that is there already is touched.

    Raises:
        RecipeError: one of them exists.
    """
    for path in map(Path, files):
        if path.exists():
            raise RecipeError(f"{str(path)!r} exists already. Choose another name, or move it away")
    for name, text in files.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
