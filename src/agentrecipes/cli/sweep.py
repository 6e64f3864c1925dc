"""``sweep``: an Optuna study over a recipe, which goes on where it was left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from agentrecipes.cli.arguments import (
    Json,
    Parts,
    RunsDir,
    add_parts,
    one_name,
    runs_folder,
    split_words,
)
from agentrecipes.cli.output import emit_json, figure, note, spared, table
from agentrecipes.errors import Problem, RecipeError

Words = Annotated[
    list[str],
    typer.Argument(
        metavar="SWEEP [KEY=VALUE]",
        help="A sweep's file, then values that replace its recipe's: [b]rollout.tasks=4[/b].",
        show_default=False,
    ),
]
Workers = Annotated[
    int, typer.Option(metavar="N", min=1, help="Trials at once, each in a process of its own.")
]
Trials = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="As many trials, instead of the file's number."),
]
Check = Annotated[bool, typer.Option("--check", help="Validate the sweep file and run nothing.")]
EXIT = {"finished": 0, "interrupted": 130}


def sweep(  # noqa: PLR0913 - a command's parameters are its options
    words: Words,
    workers: Workers = 1,
    trials: Trials = None,
    check: Check = False,
    runs_dir: RunsDir = None,
    parts: Parts = None,
    as_json: Json = False,
) -> None:
    """Run the trials of a study; one that was interrupted or killed goes on where it was."""
    from agentrecipes.sweeps.load import check as check_sweep

    split = split_words(words)
    add_parts(parts)
    found, problems = check_sweep(find_sweep(one_name(split, "sweep")), split.overrides)
    errors = [problem for problem in problems if problem.severity == "error"]
    if found is None or (errors and not check):
        raise RecipeError(errors)
    for problem in problems:
        note(f"{problem.severity}: {problem}")
    if check:
        _say_checked(found.name, problems, as_json=as_json)
        raise typer.Exit
    from dataclasses import replace

    from agentrecipes.sweeps.run import Order, run

    if trials is not None:
        fields = found.fields.model_copy(update={"trials": trials})
        found = replace(found, fields=fields)
    with spared(as_json):
        told = run(found, Order(runs_folder(runs_dir), workers, parts, note))
    if as_json:
        emit_json(told)
    else:
        typer.echo(outcome_text(told))
    raise typer.Exit(EXIT[str(told["status"])])


def _say_checked(study: str, problems: Sequence[Problem], *, as_json: bool) -> None:
    if as_json:
        told = [problem.as_dict() for problem in problems]
        emit_json({"ok": True, "study": study, "problems": told})
    else:
        typer.echo(f"ok: {study}")


def find_sweep(name: str) -> Path:
    """The file of a sweep given as a path, or as a name in ``./sweeps`` or among the shipped ones.

    Raises:
        RecipeError: there is none.
    """
    from agentrecipes.sweeps.load import sweeps_folder

    file, folders = f"{name.removesuffix('.yaml')}.yaml", (Path("sweeps"), sweeps_folder())
    for path in (Path(name), *(folder / file for folder in folders)):
        if path.is_file():
            return path
    known = ", ".join(sorted({path.stem for each in folders for path in each.glob("*.yaml")}))
    hint = f"Known sweeps: {known}." if known else "Name a YAML file."
    raise RecipeError.about("missing_file", f"there is no sweep {name!r}", hint)


def outcome_text(told: Mapping[str, Any]) -> str:
    """The trials as a table, best first, and the best one in words."""
    paths = list(dict.fromkeys(path for row in told["table"] for path in row["params"]))
    names = [objective["metric"] for objective in told["objective"]]
    sign = -1 if told["objective"][0]["direction"] == "maximize" else 1
    rows = sorted(
        told["table"], key=lambda row: (row["value"] is None, sign * (row["value"] or 0.0))
    )
    lines = [
        (
            row["number"],
            row["state"],
            *(row["values"] or [None] * len(names)),
            *(figure(row["params"].get(path)) for path in paths),
        )
        for row in rows
    ]
    blocks = [table(("trial", "state", *names, *map(_short, paths)), lines)]
    best = told["best"]
    if best is not None:
        values = ", ".join(f"{n} {v:.4g}" for n, v in zip(names, best["values"], strict=True))
        blocks.append(f"best: trial {best['number']}, {values}, run {best['run']}")
    counts = ", ".join(f"{told[word]} {word}" for word in ("finished", "pruned", "failed"))
    blocks.append(f"{told['study']}: {told['status']}, {counts}\npage    {told['dir']}/study.html")
    return "\n\n".join(blocks)


def _short(path: str) -> str:
    words = path.split(".")
    return ".".join(words[-2:]) if words[-1] == "name" else words[-1]
