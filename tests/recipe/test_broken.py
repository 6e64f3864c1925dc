"""Every rule has a file in tests/broken/ that breaks it, and says what the reader must answer.

The first lines of a file are ``# expect: <code> <line>:<column> <path> | <text>``, one for each
problem (``-`` where there is no place or path), then ``# profile:`` and ``# override:`` lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentrecipes.recipe.load import check

FOLDER = Path(__file__).parents[1] / "broken"
FILES = sorted(FOLDER.glob("*.yaml"))
EXPECT = re.compile(r"# expect: (\S+) (\S+) (\S+) \| (.+)")


@dataclass(frozen=True)
class Expected:
    """One ``# expect:`` line."""

    code: str
    place: str | None
    path: str
    text: str


def expectations(text):
    """The ``# expect:`` lines of a file."""
    return [
        Expected(code, None if place == "-" else place, "" if path == "-" else path, part.strip())
        for code, place, path, part in EXPECT.findall(text)
    ]


def settings(text, key):
    """The values of ``# key:`` lines."""
    return re.findall(rf"^# {key}: (.+)$", text, re.MULTILINE)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_broken_recipe_is_told_what_is_wrong_where_and_what_to_write(path):
    text = path.read_text(encoding="utf-8")
    profile = next(iter(settings(text, "profile")), None)
    recipe, problems = check(path, settings(text, "override"), profile=profile)
    expected = expectations(text)
    found = {(problem.code, problem.path): problem for problem in problems}
    assert sorted(found) == sorted((e.code, e.path) for e in expected), list(map(str, problems))
    assert len(problems) == len(expected)
    for each in expected:
        problem = found[each.code, each.path]
        assert each.text in f"{problem.message}. {problem.suggestion}"
        assert problem.suggestion.endswith(".") or problem.suggestion.endswith("?")
        if each.place is not None:
            assert f"{problem.line}:{problem.column}" == each.place
            assert problem.file == str(path)
    assert (recipe is None) == any(problem.severity == "error" for problem in problems)


def test_there_is_a_file_for_every_code_that_the_reader_uses():
    source = Path(__file__).parents[2] / "src" / "agentrecipes" / "recipe"
    text = "".join(file.read_text(encoding="utf-8") for file in source.glob("*.py"))
    used = set(re.findall(r"Problem\(\s*\"([a-z0-9_]+)\"", text))
    used |= set(re.findall(r"(?:note|_found|_note|_file_error)\(\s*\"([a-z0-9_]+)\"", text))
    used |= set(re.findall(r"code=\"([a-z0-9_]+)\"", text))
    shown = {e.code for path in FILES for e in expectations(path.read_text(encoding="utf-8"))}
    # These need a file that is no text, or parts that only test_rules.py has.
    elsewhere = {"not_utf8", "bad_data", "missing_field"}
    assert used - shown - elsewhere == set()


def test_there_are_many_broken_files():
    assert len(FILES) >= 45
