"""``verify``: the certificate of a run's stored tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from agentrecipes.cli.arguments import Json, Parts, RunsDir, add_parts, find_run
from agentrecipes.cli.output import emit_json, figure, note
from agentrecipes.cli.run import recipe_of
from agentrecipes.errors import CheckFailed

Run = Annotated[str, typer.Argument(metavar="RUN", help="A run's name or folder.")]
SHOWN = 20  # problems in the text


def verify(run: Run, parts: Parts = None, runs_dir: RunsDir = None, as_json: Json = False) -> None:
    """Certify the tokens that a run has stored; exit code 4 where something does not hold."""
    folder = find_run(run, runs_dir)
    add_parts(parts)
    recipe = recipe_of(folder)
    from agentrecipes.analysis.stored import open_run
    from agentrecipes.analysis.verify import verify as certify

    found = certify(open_run(folder), recipe)
    for line in found["notes"]:
        note(line)
    for problem in found["problems"][:SHOWN]:
        note(f"error: {problem_text(problem)}")
    if as_json:
        emit_json(found)
    else:
        typer.echo(certificate_text(found))
    if not found["ok"]:
        raise typer.Exit(CheckFailed.exit_code)


def problem_text(problem: Mapping[str, Any]) -> str:
    """One problem in a line: where it is, and what was found."""
    names = ("stage", "iteration", "split", "mode", "task", "attempt", "turn")
    at = ", ".join(f"{name} {problem[name]}" for name in names if problem[name] is not None)
    return f"{at}: {problem['message']}" if at else str(problem["message"])


def certificate_text(found: Mapping[str, Any]) -> str:
    """The certificate for reading."""
    count = len(found["problems"])
    verdict = "everything holds" if found["ok"] else f"{count} problem{'s' * (count > 1)}"
    gap = "not computed: the weights that sampled are not kept"
    if found["logp_gap_max"] is not None:
        gap = f"{figure(found['logp_gap_max'])} nats, over {found['logp_turns']} turns"
    lines = [
        f"{found['run']}: {verdict}",
        f"trajectories  {found['trajectories']}",
        f"tokens        {found['tokens']}, {found['retokenised']} of them tokenised again",
        f"forks         {found['forks']}",
        f"logp gap      {gap}",
    ]
    if count > SHOWN:
        lines.append(f"{count - SHOWN} problems are not shown; --json lists them all")
    return "\n".join(lines)
