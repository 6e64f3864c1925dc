"""Every algorithm has a page that tells its fields and defaults as the class has them."""

from __future__ import annotations

import json
import re
import runpy
import shlex
from pathlib import Path
from typing import Any

import pytest

from agentrecipes.algorithms.fields import Importance, Kl
from agentrecipes.cli.fields import field_lines
from agentrecipes.components import Fields, find, names
from agentrecipes.recipe.load import load

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "algorithms"
SECTIONS = ["Formula", "Normaliser", "Where it differs", "Learning curve", "Fields", "Run"]
OWN = [n for n in names("algorithm") if find("algorithm", n).__module__.startswith("agentrecipes.")]


def written(value: Any) -> str:
    """A default as YAML writes it; of a record, what is not null."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k}: {written(v)}' for k, v in value.items() if v is not None)}}}"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return str(value)


def field_table(cls: type[Fields]) -> str:
    """Fields, defaults and meanings as a page shows them."""
    rows = ["| field | default | meaning |", "| --- | --- | --- |"]
    rows += [f"| `{x.name}` | `{written(x.default)}` | {x.meaning} |" for x in field_lines(cls)]
    return "\n".join(rows) + "\n"


def page(name: str) -> str:
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


def test_there_is_a_page_for_every_algorithm_and_for_nothing_else():
    assert sorted(path.stem for path in PAGES.glob("*.md")) == sorted(["README", *OWN])


@pytest.mark.parametrize("name", OWN)
def test_a_page_shows_the_fields_and_defaults_of_the_class(name):
    [section] = re.findall(r"\n## Fields\n\n(.*?\n)\n", page(name), re.DOTALL)
    assert section == field_table(find("algorithm", name)), "write this table on the page"


@pytest.mark.parametrize("name", OWN)
def test_a_page_has_every_section_in_order(name):
    text = page(name)
    assert text.startswith(f"# `{name}`: ")
    wanted = [section for section in SECTIONS if (name, section) != ("sft", "Learning curve")]
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == wanted


@pytest.mark.parametrize("name", [name for name in OWN if name != "sft"])
def test_a_page_tells_the_figures_that_were_stored(name, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "bench")
    bench = runpy.run_path(str(ROOT / "bench" / "algorithms.py"))
    kept = json.loads((ROOT / "docs" / "results" / "algorithms.json").read_text("utf-8"))
    assert bench["sentence"](name, kept[name]) in page(name)
    [picture] = re.findall(r"\]\((.*\.svg)\)", page(name))
    assert (PAGES / picture).read_text("utf-8").startswith("<svg")
    runs = kept[name]["runs"]
    assert len(runs) >= 3
    assert bench["verdicts"]({name: kept[name]}) == []


@pytest.mark.parametrize("name", OWN)
def test_the_command_of_a_page_runs_that_algorithm(name):
    [command] = re.findall(r"```sh\n(.*?)\n```", page(name), re.DOTALL)
    program, verb, recipe, *overrides = shlex.split(command)
    assert (program, verb) == ("agentrecipes", "run")
    stages = load(ROOT / recipe, overrides).stages
    assert name in [stage.algorithm.part_name for stage in stages]


def test_the_first_page_names_every_algorithm_and_explains_the_shared_records():
    text = page("README")
    assert set(re.findall(r"^\| \[`(\w+)`\]\(\1\.md\)", text, re.MULTILINE)) == set(OWN)
    assert field_table(Kl).rstrip() in text
    assert field_table(Importance) in text


@pytest.mark.parametrize("name", [*OWN, "README"])
def test_no_line_of_a_page_outside_tables_is_longer_than_a_screen(name):
    lines = [line for line in page(name).splitlines() if not line.startswith("|")]
    assert [line for line in lines if len(line) > 120] == []
