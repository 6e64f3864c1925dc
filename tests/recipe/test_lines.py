"""Data files of JSON lines."""

from __future__ import annotations

import gzip

import pytest

from agentrecipes.errors import RecipeError
from agentrecipes.recipe.lines import passages, rows, unique
from agentrecipes.records import Passage


def test_lines_are_numbered_as_an_editor_numbers_them(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes('\ufeff{"a": 1}\r\n\n  \n{"a": "line\u2028break"}\n'.encode())
    assert rows(path) == [(f"{path}:1", {"a": 1}), (f"{path}:4", {"a": "line\u2028break"})]


def test_a_gzipped_file_reads_like_the_plain_one(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"id": 1, "text": "x"}\n')
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b'{"id": 1, "text": "x"}\n'))
    plain, packed = passages(tmp_path / "a.jsonl"), passages(tmp_path / "a.jsonl.gz")
    assert plain == packed == (Passage("1", "", "x"),)


@pytest.mark.parametrize("line", ["{", "3", '"text"', "[" * 100_000, "NaN}"])
def test_a_line_that_is_no_object_is_named(tmp_path, line):
    path = tmp_path / "a.jsonl"
    path.write_text("{}\n" + line, encoding="utf-8")
    with pytest.raises(RecipeError, match=r"a\.jsonl:2"):
        rows(path)


def test_a_missing_file_is_named_with_its_reason(tmp_path):
    with pytest.raises(RecipeError, match=r"none\.jsonl: cannot be read .*No such file"):
        rows(tmp_path / "none.jsonl")


def test_an_id_is_given_once():
    seen = {}
    assert unique("a", "f:1", seen) == "a"
    with pytest.raises(RecipeError, match="f:2: the id 'a' is that of f:1 too"):
        unique("a", "f:2", seen)
