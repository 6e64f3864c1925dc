"""``python -m agentrecipes.cli.reference``: docs/recipe.md, from records and their comments."""

from __future__ import annotations

import sys
from pathlib import Path

from agentrecipes.cli.fields import FieldLine, field_lines
from agentrecipes.cli.parts import default_text, summary
from agentrecipes.components import FOLDER, Component, Fields, find, names
from agentrecipes.recipe import schema

HEAD = """\
# Every field of a recipe

Made by `make docs` from the records that validate recipes and the comments beside their fields; a
test holds it to them. `agentrecipes list KIND` shows the same for what is installed, plug-ins
included, and `agentrecipes schema` prints it as a JSON Schema for editors.

A part is written `{name: x, field: …}` or just `x`. Any number, text or choice may be a schedule:
`{schedule: linear, from: 0.5, to: 0, over: 200}`, also `cosine`, `{schedule: constant, value: 1}`
and `{schedule: steps, values: [5, 8, 10], every: 100}`.
"""

SECTIONS: tuple[tuple[str, type[Fields]], ...] = (
    ("Top level", schema.RecipeFields),
    ("Stage", schema.Stage),
    ("rewards, each entry, beside the fields of its part", schema.RewardEntry),
    ("rollout", schema.Rollout),
    ("optimizer", schema.Optimizer),
    ("trainer", schema.Trainer),
    ("evaluation", schema.Evaluation),
    ("tracking", schema.Tracking),
    ("tripwires", schema.Tripwires),
    ("tripwires.no_signal", schema.NoSignal),
    ("tripwires.dead_type", schema.DeadType),
    ("tests, each entry", schema.Example),
)

OF_THE_PART = (schema.RewardEntry, "part")  # in YAML the part's own fields stand in its place

OUTSIDE = """\
Two keys are gone once a recipe is resolved: `profiles` (name → overlay, chosen with `--profile`)
and `extends` (another recipe's file, which this one merges over).
"""


def page() -> str:
    """The whole page as Markdown."""
    blocks = [HEAD]
    for title, record in SECTIONS:
        blocks.append(f"## {title}\n\n{summary(record)}\n\n{field_table(record)}")
        if record is schema.RecipeFields:
            blocks.append(OUTSIDE)
    for kind in sorted(FOLDER):
        parts = [(name, find(kind, name)) for name in names(kind) if _own(kind, name)]
        if parts:
            blocks.append(f"## Parts: {kind}\n")
            blocks += [_part(kind, name, cls) for name, cls in parts]
    return "\n".join(blocks).rstrip() + "\n"


def _own(kind: str, name: str) -> bool:
    """Whether a part is this package's, not a plug-in's."""
    return find(kind, name).__module__.startswith("agentrecipes.")


def _part(kind: str, name: str, cls: type[Component]) -> str:
    lines = field_table(cls) if cls.model_fields else "No fields.\n"
    return f"### {kind} `{name}`\n\n{summary(cls)}\n\n{lines}"


def field_table(cls: type[Fields]) -> str:
    """A Markdown table of a record's fields."""
    rows = ["| field | type | default | meaning |", "| --- | --- | --- | --- |"]
    lines = [line for line in field_lines(cls) if (cls, line.name) != OF_THE_PART]
    rows += [f"| {' | '.join(_cells(line))} |" for line in lines]
    return "\n".join(rows) + "\n"


def _cells(line: FieldLine) -> list[str]:
    kind = f"{line.type} {line.limits}".strip()
    default = "required" if line.required else f"`{default_text(line)}`"
    cells = [f"`{line.name}`", kind, default, line.meaning]
    return [cell.replace("|", "\\|").replace("\n", " ") for cell in cells]


def main(arguments: list[str]) -> None:
    """Write the page to the file that was named, else to docs/recipe.md."""
    path = Path(arguments[0]) if arguments else Path("docs/recipe.md")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
