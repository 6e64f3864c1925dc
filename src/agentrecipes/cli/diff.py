"""``diff``: what differs between two runs, from the recipe down to the first token."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Annotated, Any

import typer

from agentrecipes.cli.arguments import Json, RunsDir, find_run
from agentrecipes.cli.output import emit_json, figure, note, table

RunA = Annotated[str, typer.Argument(metavar="A", help="A run's name or folder.")]
RunB = Annotated[str, typer.Argument(metavar="B", help="The run to compare it with.")]
SHOWN = 60  # characters of an action or a value in the text
BEFORE = 20  # characters shown before two texts part


def diff(a: RunA, b: RunB, runs_dir: RunsDir = None, as_json: Json = False) -> None:
    """Compare two runs: recipe, lock, first divergent token, metrics and reward parts."""
    folders = find_run(a, runs_dir), find_run(b, runs_dir)
    from agentrecipes.analysis.diff import diff as compare

    found = compare(*folders)
    for side in ("a", "b"):
        if found[side]["status"] != "finished":
            note(f"{found[side]['run']} is {found[side]['status']}: compared as far as it went")
    if as_json:
        emit_json(found)
    else:
        typer.echo(diff_text(found))


def diff_text(found: Mapping[str, Any]) -> str:
    """The comparison for reading; each block says that there is nothing where there is nothing."""
    blocks = [
        f"a: {found['a']['run']}\nb: {found['b']['run']}",
        _values("recipe", found["recipe"], "path"),
        _values("lock", found["lock"], "name"),
        _divergence(found["first_divergence"]),
        _figures("metrics, last evaluations", found["metrics"], ("split", "mode", "metric")),
        _figures("rewards, mean over training", found["rewards"], ("stage", "part", "iterations")),
    ]
    return "\n\n".join(blocks)


def _values(title: str, rows: Sequence[Mapping[str, Any]], key: str) -> str:
    if not rows:
        return f"{title}: equal"
    return f"{title}\n{table((key, 'a', 'b'), [_cells(row, key) for row in rows])}"


def _cells(row: Mapping[str, Any], key: str) -> list[str]:
    return [str(row[key]), *(_short(_written(row[side])) for side in ("a", "b"))]


def _written(value: object) -> str:
    if value is None or isinstance(value, str):
        return figure(value)
    return json.dumps(value, ensure_ascii=False)


def _divergence(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "first divergent token: none, every training token is equal"
    lines = [
        f"first divergent token: stage {found['stage']}, iteration {found['iteration']}, "
        f"task {found['task']}, attempt {found['attempt']}, turn {found['turn']}, "
        f"{found['part']} token {found['token']}"
    ]
    texts = [found["a_text"], found["b_text"]]
    start = max(0, _shared(*texts) - BEFORE)
    for side, text in zip(("a", "b"), texts, strict=True):
        token = found[side]
        what = "no token there" if token is None else f"token {token}"
        said = "the turn was not played" if text is None else f"the action says {_cut(text, start)}"
        lines.append(f"  {side}: {what}; {said}")
    return "\n".join(lines)


def _shared(one: str | None, other: str | None) -> int:
    """How many characters both texts begin with."""
    pairs = zip(one or "", other or "", strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _cut(text: str, start: int) -> str:
    shown = f"{'…' if start else ''}{text[start:]}"
    return json.dumps(_short(shown), ensure_ascii=False)


def _figures(title: str, rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> str:
    if not rows:
        return f"{title}: none"
    lines = [
        [*(row[key] for key in keys), row["a"], row["b"], row["difference"], _interval(row)]
        for row in rows
    ]
    return f"{title}\n{table((*keys, 'a', 'b', 'b - a', '95 % interval'), lines)}"


def _interval(row: Mapping[str, Any]) -> str | None:
    if row["interval"] is None:
        return None
    low, high = row["interval"]
    return f"{low:.3g} to {high:.3g}"


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
