"""The command line in this process, and what it printed."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from agentrecipes.cli.main import main


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def command(capsys, monkeypatch, tmp_path):
    """Run a command in an empty folder, 80 columns wide and without colours."""
    monkeypatch.chdir(tmp_path)
    for name, value in {"COLUMNS": "80", "NO_COLOR": "1", "AGENTRECIPES_RUNS": "runs"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def call(*words: object) -> Done:
        with pytest.raises(SystemExit) as end:
            main([str(word) for word in words])
        out, err = capsys.readouterr()
        return Done(end.value.code, out, err)

    return call
