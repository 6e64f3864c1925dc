"""``study.html``: a study on one page that opens from disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from agentrecipes.sweeps.drawing import Mark, Scatter, bars
from agentrecipes.sweeps.space import Entry, Space

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:76rem;padding:0 1rem}
body{color:#1c2530;background:#fff}
figure{display:inline-block;width:24rem;max-width:100%;margin:.5rem 1rem .5rem 0;vertical-align:top}
figcaption{font-weight:600}
svg{width:100%;height:auto}
text{font-size:11px;fill:currentColor}
.y{text-anchor:end}.x{text-anchor:middle}
.grid{stroke:currentColor;stroke-opacity:.15}
.done{fill:#2468b3;fill-opacity:.75}.pruned{fill:#c77700;fill-opacity:.6}.best{fill:#13793b;stroke:#13793b}
polyline.best{fill:none;stroke-width:2}
.bar{fill:#2468b3}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
td,th{text-align:left;padding:.2rem .8rem .2rem 0;border-bottom:1px solid #8884}
.wide{overflow-x:auto}
@media(prefers-color-scheme:dark){body{color:#dde5ee;background:#141a21}.done,.bar{fill:#6fa8e8}.pruned{fill:#e9a53f}
.best{fill:#5fc489;stroke:#5fc489}}
"""

Row = Mapping[str, Any]


def page(told: Row, space: Space, importances: Sequence[Mapping[str, float]]) -> str:
    """The page about what `told` says; `importances` has one mapping for each objective."""
    names = [objective["metric"] for objective in told["objective"]]
    done = [row for row in told["table"] if row["state"] == "finished"]
    drawings: list[str] = []
    if done:
        drawings.append(_history(told, done, names[0]))
        if len(names) > 1:
            drawings.append(_front(told, done, names))
        for name, shares in zip(names, importances, strict=True):
            if shares:
                drawings.append(bars(f"What {name} depends on", list(shares.items())))
        for index, name in enumerate(names):
            drawings += [_slice(told, done, entry, (index, name)) for entry in space.entries]
    title = f"{told['study']}: {told['finished']} finished, {told['pruned']} pruned trials"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style><h1>{escape(told['study'])}</h1>"
        f"<p>{escape(_verdict(told, names))}</p>{''.join(drawings)}"
        f'<h2>Trials</h2><div class="wide">{_table(told, names)}</div></html>'
    )


def _verdict(told: Row, names: Sequence[str]) -> str:
    counts = ", ".join(f"{told[word]} {word}" for word in ("finished", "pruned", "failed"))
    best = told["best"]
    if best is None:
        return f"{counts}."
    values = ", ".join(f"{n} {v:.4g}" for n, v in zip(names, best["values"], strict=True))
    return f"{counts}. Best: trial {best['number']}, {values}, run {best['run']}."


def _says(row: Row, names: Sequence[str]) -> str:
    values = ", ".join(f"{n} {v:.4g}" for n, v in zip(names, row["values"], strict=True))
    params = ", ".join(f"{path} {_shown(value)}" for path, value in row["params"].items())
    return f"trial {row['number']}: {values}. {params}"


def _kind(told: Row, row: Row) -> str:
    best = [told["best"], *told["front"]]
    return "best" if any(row["number"] == each["number"] for each in best) else "done"


def _history(told: Row, done: Sequence[Row], name: str) -> str:
    marks = [
        Mark(
            row["number"],
            row["value"],
            f"trial {row['number']}: {row['value']:.4g}",
            _kind(told, row),
        )
        for row in done
    ]
    pruned = [
        Mark(row["number"], row["curve"][-1][1], f"trial {row['number']}, ended early", "pruned")
        for row in told["table"]
        if row["state"] == "pruned" and row["curve"]
    ]
    return Scatter("Trial by trial", "trial", name, [*marks, *pruned]).svg()


def _front(told: Row, done: Sequence[Row], names: Sequence[str]) -> str:
    marks = [
        Mark(row["values"][1], row["values"][0], _says(row, names), _kind(told, row))
        for row in done
    ]
    return Scatter("Where neither gains for free (green)", names[1], names[0], marks).svg()


def _slice(told: Row, done: Sequence[Row], entry: Entry, objective: tuple[int, str]) -> str:
    index, name = objective
    marks = []
    for row in done:
        if entry.path in row["params"]:
            value = row["params"][entry.path]
            says = f"trial {row['number']}: {_shown(value)}"
            at = _shown(value) if entry.kind == "choice" else value
            marks.append(Mark(at, row["values"][index], says, _kind(told, row)))
    if not marks:
        return ""
    return Scatter(entry.path, entry.path.rpartition(".")[2], name, marks, log=entry.log).svg()


def _table(told: Row, names: Sequence[str]) -> str:
    paths = list(dict.fromkeys(path for row in told["table"] for path in row["params"]))
    head = "".join(f"<th>{escape(name)}</th>" for name in ("trial", "state", *names, *paths, "run"))
    lines = []
    for row in told["table"]:
        values = [f"{value:.4g}" for value in row["values"]] or [""] * len(names)
        params = [_shown(row["params"][p]) if p in row["params"] else "" for p in paths]
        state = row["state"] if not row["reason"] else f"{row['state']}: {row['reason']}"
        cells = [str(row["number"]), state, *values, *params, str(row["run"] or "")]
        lines.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
