"""One rank of a run on several devices: ``python -m agentrecipes.cli.rank JOB.json``."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentrecipes.cli.launch import LEASH
from agentrecipes.errors import AgentRecipesError, RecipeError

if TYPE_CHECKING:
    from agentrecipes.recipe.load import Recipe


def main(path: Path) -> int:
    """Carry out the job as the rank that the environment says; the exit code."""
    _on_leash(int(os.environ[LEASH]))
    try:
        return _run(json.loads(path.read_text(encoding="utf-8")))
    except KeyboardInterrupt:
        return 130
    except AgentRecipesError as error:
        _leave(error, path.parent / f"{os.environ['RANK']}.error")
        return error.exit_code


def _run(job: dict[str, Any]) -> int:
    from agentrecipes.cli.run import EXIT, carried_out
    from agentrecipes.compile import RunPlace
    from agentrecipes.components import add_folder
    from agentrecipes.tracking.protocol import Within

    for folder in job["parts"]:
        add_folder(Path(folder))
    place = RunPlace(Path(job["runs"]), Path(job["place"]), Within(**job["within"]))
    summary = carried_out(_recipe(job), place, resume=job["resume"])
    orderly = os.environ["RANK"] != "0" and summary["status"] != "failed"
    return 0 if orderly else EXIT[summary["status"]]  # rank 0 speaks for all


def _leave(error: AgentRecipesError, path: Path) -> None:
    """Leave the reason where the process that started this one looks for it."""
    problems = error.problems if isinstance(error, RecipeError) else ()
    told = {
        "message": str(error),
        "exit_code": error.exit_code,
        "problems": [problem.as_dict() for problem in problems],
    }
    path.write_text(json.dumps(told), encoding="utf-8")


def _recipe(job: dict[str, Any]) -> Recipe:
    from agentrecipes.recipe.load import load

    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "recipe.yaml"
        path.write_text(job["recipe"], encoding="utf-8")
        recipe = load(path, folder=Path(job["folder"]))
    return replace(recipe, profile=job["profile"], origin=job["origin"])


def _on_leash(pipe: int) -> None:
    """End this process when the one that started it is gone."""

    def wait() -> None:
        os.read(pipe, 1)
        os._exit(1)

    threading.Thread(target=wait, name="leash", daemon=True).start()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
