from __future__ import annotations

import pytest

from agentrecipes.errors import RecipeError
from agentrecipes.recipe.load import check
from agentrecipes.recipe.positions import lookup, plain
from agentrecipes.recipe.source import MAX_BYTES, MAX_NODES, read


def refusal(path):
    """The one problem that a file is refused with."""
    with pytest.raises(RecipeError) as caught:
        read(path, "r.yaml")
    [problem] = caught.value.problems
    assert problem.file == "r.yaml"
    return problem


def test_values_are_read_by_omegaconf_and_keep_their_places(write):
    tree = read(write("a: 1e-5\nb:\n  - {c: yes}\n"), "r.yaml")
    assert plain(tree) == {"a": 1e-5, "b": [{"c": True}]}
    node = lookup(tree, ("b", 0, "c"))
    assert (node.place.label, node.place.line, node.place.column) == ("r.yaml:3", 3, 9)
    assert (node.key.line, node.key.column) == (3, 6)


def test_a_merge_key_brings_fields_that_keep_their_places(write):
    tree = read(write("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\n"), "r.yaml")
    assert plain(tree)["b"] == {"x": 1, "y": 3}
    assert lookup(tree, ("b", "x")).place.line == 1
    assert lookup(tree, ("b", "y")).place.line == 2


def test_a_mark_of_the_byte_order_and_windows_line_ends_do_no_harm(tmp_path):
    path = tmp_path / "r.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    tree = read(path, "r.yaml")
    assert plain(tree) == {"a": 1, "b": 2}
    assert (tree.items["a"].key.column, tree.items["b"].key.line) == (1, 2)


def test_a_byte_that_is_not_utf8_is_told_with_its_offset(tmp_path):
    path = tmp_path / "r.yaml"
    path.write_bytes(b"name: a\nb: \xff\n")
    problem = refusal(path)
    assert (problem.code, problem.line) == ("not_utf8", 2)
    assert "byte 11 (0xff)" in problem.message


def test_a_missing_file_a_folder_and_a_device_are_refused(tmp_path):
    assert "no such file" in refusal(tmp_path / "none.yaml").message
    assert "folder" in refusal(tmp_path).message
    assert {refusal(tmp_path).code, refusal(tmp_path / "none.yaml").code} == {"missing_file"}


def test_a_file_over_the_size_limit_is_refused_unread(tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text("# " + "x" * MAX_BYTES, encoding="utf-8")
    assert refusal(path).code == "too_large"


def test_a_file_of_too_many_values_is_refused_before_it_is_composed(write):
    problem = refusal(write("a: [" + "1," * MAX_NODES + "]\n"))
    assert (problem.code, problem.line) == ("too_large", 1)


def test_a_character_that_yaml_forbids_is_told_by_its_code_point(tmp_path):
    path = tmp_path / "r.yaml"
    path.write_bytes(b"a: 1\nb: x\x07y\n")
    problem = refusal(path)
    assert (problem.code, problem.line, problem.column) == ("invalid_yaml", 2, 5)
    assert "U+0007" in problem.message


def test_all_bad_keys_and_values_are_told_at_once(write):
    with pytest.raises(RecipeError) as caught:
        read(write("a: ${b}\na: .nan\n3: x\n"), "r.yaml")
    places = {problem.code: (problem.line, problem.column) for problem in caught.value.problems}
    assert places == {
        "interpolation": (1, 4),
        "duplicate_key": (2, 1),
        "out_of_range": (2, 4),
        "wrong_type": (3, 1),
    }


@pytest.mark.parametrize("text", ["", "   \n", "# a\n", "---\n", "null\n", "5\n", "[1]\n", "a\n"])
def test_whatever_is_no_mapping_is_refused(write, text):
    assert refusal(write(text)).code in {"empty_file", "wrong_type"}


@pytest.mark.parametrize(
    "text",
    ["a: [", "a: 'x", "a: b: c", "&", "*x", "a: *x", "? [1]: 2", "a: ${", "- a: 1\n b: 2", "%"],
)
def test_broken_yaml_is_a_problem_and_never_a_traceback(write, text):
    recipe, problems = check(write(text))
    assert recipe is None
    assert problems
    assert all(problem.severity == "error" for problem in problems)
