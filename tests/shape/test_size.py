"""A file fits in one sitting, a function on one page, and both are called what they are."""

from __future__ import annotations

import ast
import re

import pytest
from tests.shape.source import MODULES, ROOT, SRC, code_lines, functions, label

from agentrecipes.cli.main import COMMANDS

FILE_LINES, FUNCTION_LINES, PARAMETERS, POSITIONAL = 300, 40, 5, 3
NO_NAMES = {"utils", "helpers", "common", "misc", "base", "manager"}
NO_WORDS = {  # words that have another name here, and cannot mean anything else
    "actor": "policy",
    "datapoint": "task",
    "ref[ _]model": "reference",
    "loss[ _]mask": "action mask",
    "completion[ _]mask": "action mask",
    "adv": "advantage",
}
COMMAND_FUNCTIONS = {(entry.module, entry.function) for entry in COMMANDS.values()}


@pytest.mark.parametrize("path", MODULES, ids=label)
def test_a_file_fits_in_one_sitting(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= FILE_LINES


@pytest.mark.parametrize("path", MODULES, ids=label)
def test_a_function_fits_on_one_page(path):
    long = {f.name: code_lines(f) for f in functions(path) if code_lines(f) > FUNCTION_LINES}
    assert long == {}


def is_command(path, name):
    """Whether a function is a command, whose parameters are the command's options."""
    return path.parent == SRC / "cli" and (path.stem, name) in COMMAND_FUNCTIONS


@pytest.mark.parametrize("path", MODULES, ids=label)
def test_a_function_takes_few_parameters(path):
    wrong = {}
    for function in functions(path):
        arguments = function.args
        positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        positional = [name for name in positional if name not in ("self", "cls")]
        count = len(positional) + len(arguments.kwonlyargs)
        given = function.name.startswith("__") and function.name not in ("__init__", "__call__")
        if given or is_command(path, function.name):  # Python's own signatures, and options
            continue
        if count > PARAMETERS or len(positional) > POSITIONAL:
            wrong[function.name] = (len(positional), len(arguments.kwonlyargs))
    assert wrong == {}, "(positional, keyword-only)"


@pytest.mark.parametrize("path", MODULES, ids=label)
def test_a_file_is_not_called_after_nothing(path):
    assert not NO_NAMES & {path.stem, *path.relative_to(SRC).parts[:-1]}


@pytest.mark.parametrize("path", [*MODULES, *sorted(ROOT.glob("recipes/*.yaml"))], ids=label)
def test_words_are_those_of_the_word_list(path):
    text = path.read_text(encoding="utf-8").lower()
    found = [
        f"{word}: say {instead}"
        for word, instead in NO_WORDS.items()
        if re.search(rf"(?<![a-z]){word}(?![a-z]|-critic)", text)
    ]
    assert found == []


@pytest.mark.parametrize("path", MODULES, ids=label)
def test_inheritance_is_never_deeper_than_one_step_from_a_known_base(path):
    classes = {
        node.name: [ast.unparse(base) for base in node.bases]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    }
    deep = [
        name
        for name, bases in classes.items()
        for base in bases
        if base in classes and base not in ROOTS and any(b not in PLAIN for b in classes[base])
    ]
    assert deep == []


ROOTS = {"Fields", "Component", "AgentRecipesError"}
PLAIN = {"Fields", "Component", "BaseModel", "Protocol", "AgentRecipesError", "Exception"}
