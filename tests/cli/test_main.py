from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module

import pytest
from tests.cli.snapshot import check_snapshot, settled

from agentrecipes.cli.main import COMMANDS


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_is_as_stored(command, tmp_path, name):
    done = command(*([name] if name else []), "--help")
    assert (done.code, done.err) == (0, "")
    check_snapshot(f"help_{name or 'agentrecipes'}", settled(done.out, tmp_path))


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_of_the_table_exists_and_says_what_it_does(name):
    entry = COMMANDS[name]
    function = getattr(import_module(f"agentrecipes.cli.{entry.module}"), entry.function)
    assert function.__doc__
    assert entry.help.endswith(".")


def test_a_misspelt_command_is_suggested(command):
    done = command("chekc")
    assert (done.code, done.out) == (2, "")
    assert "No such command 'chekc'. Did you mean 'check'?" in done.err


def test_a_wrong_option_is_one_line_and_with_json_one_object(command):
    done = command("doctor", "--jsn")
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    done = command("doctor", "--json", "--bogus")
    told = json.loads(done.out)
    assert (done.code, told["ok"], told["exit_code"]) == (2, False, 2)
    assert told["error"].endswith("Try 'agentrecipes doctor --help'.")


def test_without_a_command_the_help_is_shown(command):
    done = command()
    assert done.code == 2
    assert "Usage: agentrecipes" in done.out + done.err


def test_the_version_is_the_package_s(command):
    from agentrecipes import __version__

    done = command("--version")
    assert (done.code, done.out) == (0, f"{__version__}\n")


def test_a_bug_shows_its_traceback():
    program = (
        "import agentrecipes.cli.doctor as d; from agentrecipes.cli.main import main\n"
        "def broken(): raise ZeroDivisionError('a bug')\n"
        "d.needs = broken\n"
        "main(['doctor'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")
    assert "ZeroDivisionError: a bug" in done.stderr
