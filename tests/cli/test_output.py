from __future__ import annotations

import json
import os
import subprocess

import pytest

from agentrecipes.cli.output import emit_json, figure, plain_json, report_error, spared, table
from agentrecipes.errors import CheckFailed, MissingExtra, Problem, RecipeError


def test_numbers_are_right_aligned_under_their_name_and_text_is_not():
    text = table(("name", "value"), [("a", 1), ("long", 22.5), ("b", None)])
    assert text.splitlines() == ["name  value", "a         1", "long   22.5", "b         -"]


def test_a_figure_has_four_digits():
    assert [figure(v) for v in (0.123456, 3, None, "x", 1e-5)] == ["0.1235", "3", "-", "x", "1e-05"]


def test_json_never_holds_what_json_cannot_say(capsys):
    emit_json({"a": float("nan"), "b": (1, float("inf")), "c": {"d": {3}}})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [1, None], "c": {"d": [3]}}
    assert plain_json(True) is True


def test_what_libraries_print_leaves_stdout_to_the_one_object(capfd):
    with spared(True):
        print("from python")
        os.write(1, b"from C\n")
        subprocess.run(["echo", "from a process"], check=True)
    emit_json({"a": 1})
    out, err = capfd.readouterr()
    assert json.loads(out) == {"a": 1}
    assert sorted(err.splitlines()) == ["from C", "from a process", "from python"]
    with spared(False):
        print("for people")
    assert capfd.readouterr().out == "for people\n"


def test_an_error_gives_stdout_back(capfd):
    with pytest.raises(ValueError, match="broken"), spared(True):
        raise ValueError("broken")
    emit_json({"a": 1})
    assert json.loads(capfd.readouterr().out) == {"a": 1}


def test_a_recipe_error_is_one_line_per_problem(capsys):
    error = RecipeError(
        [
            Problem(
                "unknown_key", "rollout.task", "no field is called 'task'", file="r.yaml", line=7
            ),
            Problem("wrong_type", "seed", "expected a number", "Write 3.", "warning"),
        ]
    )
    assert report_error(error, as_json=False) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "error: r.yaml:7 rollout.task: no field is called 'task'.",
        "warning: seed: expected a number. Write 3.",
    ]


def test_with_json_an_error_is_one_object_and_the_lines_stay_on_stderr(capsys):
    assert report_error(RecipeError("it is wrong"), as_json=True) == 2
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert (told["ok"], told["exit_code"], len(told["problems"])) == (False, 2, 1)
    assert told["problems"][0]["message"] == "it is wrong"
    assert err == "error: it is wrong.\n"


def test_other_errors_keep_their_own_exit_code(capsys):
    assert report_error(MissingExtra("vllm: pip install 'agentrecipes[vllm]'"), False) == 3
    assert report_error(CheckFailed("a hash differs"), False) == 4
    assert capsys.readouterr().err.splitlines() == [
        "error: vllm: pip install 'agentrecipes[vllm]'",
        "error: a hash differs",
    ]
