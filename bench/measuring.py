"""How the comparisons with TRL measure and tell: turns, ratios with intervals, rows, tables."""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any

from beside_trl import LARGE, SIZES, SMALL, TRL, Shape

PRECISIONS = ("fp32", "fast", "bf16")
QUIET = 1.5  # load average before the start, above which nothing is reported


def wait_for_quiet(*, force: bool) -> None:
    """Refuse to measure beside other work.

    Raises:
        SystemExit: the load is above QUIET.
    """
    load = os.getloadavg()[0]
    if load > QUIET and not force:
        raise SystemExit(f"The load average is {load:.1f}: measure on a quiet machine, or --force.")


def interleaved(
    sides: dict[str, Callable[[], Any]],
    *,
    repeats: int,
    warmup: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds of each side, `repeats` times, in an order that is turned round each time."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(warmup + repeats):
        names = list(sides) if number % 2 == 0 else list(sides)[::-1]
        for name in names:
            began = clock()
            sides[name]()
            if number >= warmup:
                taken[name].append(clock() - began)
    return taken


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """Median of theirs over median of ours, and its 95 % bootstrap interval."""
    draw = random.Random(0)

    def once(a: Sequence[float], b: Sequence[float]) -> float:
        return statistics.median(b) / statistics.median(a)

    drawn = sorted(
        once(draw.choices(ours, k=len(ours)), draw.choices(theirs, k=len(theirs)))
        for _ in range(2000)
    )
    return once(ours, theirs), drawn[50], drawn[1949]


def arguments(title: str, *, shapes: bool = True) -> argparse.ArgumentParser:
    """The options that every comparison has, and those of comparisons by shape."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--quick", action="store_true", help="less of it, in minutes")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--force", action="store_true", help="measure beside other work")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--write", type=Path, help="put the table into this page, JSON beside")
    if shapes:
        parser.add_argument("--threads", type=int, default=1)
        parser.add_argument("--model", choices=tuple(SIZES), action="append")
        parser.add_argument("--shape", action="append", help="of them only 256,64,8,4, for example")
        parser.add_argument(
            "--cpu", action="store_true", help="seconds of this process, as beside other work"
        )
    return parser


def shapes(words: argparse.Namespace) -> list[Shape]:
    """Those that the options ask for."""
    every = SMALL if words.quick else SMALL + LARGE
    return [
        shape
        for shape in every
        if (not words.model or shape.model in words.model)
        and (not words.shape or ",".join(map(str, astuple(shape)[1:])) in words.shape)
    ]


def main(
    words: argparse.Namespace,
    measured: Callable[[Shape, argparse.Namespace], list[dict[str, Any]]],
    extra: Sequence[str],
) -> None:
    """Measure shape by shape; print lines or JSON, and write what the options ask for.

    `extra` names the figures of a row that are told beside the usual ones.
    """
    import torch

    torch.set_num_threads(words.threads)
    wait_for_quiet(force=words.force or words.cpu)
    name = Path(sys.argv[0]).stem

    def rows() -> Iterable[dict[str, Any]]:
        for shape in shapes(words):
            made = [{**each, "threads": words.threads} for each in measured(shape, words)]
            if words.write:
                write(words.write, name, made, extra)
            yield from made

    report(rows(), lambda each: told(each, *extra), as_json=words.json)


def clock(words: argparse.Namespace) -> Callable[[], float]:
    """What the options measure by."""
    return time.process_time if words.cpu else time.perf_counter


def row(shape: Shape, taken: dict[str, list[float]], other: str, **more: Any) -> dict[str, Any]:
    """The figures of "ours" beside those of another side, median over median; and `more`.

    One measurement has no interval.
    """
    middle, low, high = ratio(taken["ours"], taken[other])
    return {
        **asdict(shape),
        "ours_seconds": statistics.median(taken["ours"]),
        "trl_seconds": statistics.median(taken[other]),
        "ratio": middle,
        "low": low if len(taken[other]) > 1 else None,
        "high": high if len(taken[other]) > 1 else None,
        "gradient_gap": None,
        "repeats": len(taken[other]),
        **more,
    }


def told(found: dict[str, Any], *extra: str) -> str:
    """A row as a line to read, with some of its further figures by name."""
    size = "{model} P{prompt} C{completion} G{group} x{prompts}".format(**found)
    figures = "{ours_seconds:.3f} s, TRL {trl_seconds:.3f} s".format(**found)
    wide = "" if found["low"] is None else " [{low:.2f}, {high:.2f}]".format(**found)
    spread = f"x{found['ratio']:.2f}{wide}"
    more = (
        f"{name} {found[name]:.3g}" if isinstance(found[name], float) else f"{name} {found[name]}"
        for name in extra
    )
    return "  ".join([f"{size}: {figures}", spread, *more])


def report(
    measured: Iterable[dict[str, Any]], line: Callable[[dict[str, Any]], str], *, as_json: bool
) -> list[dict[str, Any]]:
    """Print rows as they come, or all of them as JSON; the rows."""
    rows = []
    for each in measured:
        rows.append(each)
        if not as_json:
            print(line(each), flush=True)
    if as_json:
        print(json.dumps({"rows": rows}))
    return rows


def write(page: Path, name: str, rows: Sequence[dict[str, Any]], extra: Sequence[str]) -> None:
    """Put rows of the comparison `name` into the table of `page` and into the JSON beside it.

    They take the place of earlier ones of the same shape; the others stay.

    Raises:
        SystemExit: the page has no marks that say where.
    """
    made = command(name)
    results = page.parent / "results" / f"{name}.json"
    kept = json.loads(results.read_text())["rows"] if results.exists() else []
    kept = {key(each): each for each in kept}
    kept |= {key(each): {**each, "command": made, "machine": machine()} for each in rows}
    every = [kept[which] for which in sorted(kept)]
    put(page, name, table(every, extra))
    results.write_text(json.dumps({"rows": every}, indent=1) + "\n")


def command(name: str) -> str:
    """How this comparison was called."""
    return " ".join(["python", f"bench/{name}.py", *sys.argv[1:]])


def put(page: Path, name: str, made: str) -> None:
    """Put what was made for `name` between its marks on the page.

    Raises:
        SystemExit: the page has no such marks.
    """
    text, (start, end) = page.read_text(), (f"<!-- {name} -->\n", f"<!-- end of {name} -->")
    if start not in text or end not in text:
        raise SystemExit(f"{page}: no lines {start.strip()} and {end}. Add them where to write.")
    before, _, rest = text.partition(start)
    page.write_text(f"{before}{start}{made}{end}{rest.partition(end)[2]}")


def key(found: dict[str, Any]) -> tuple[Any, ...]:
    """What tells a row from the others of its comparison, in the order of a table."""
    shape = tuple(found[name] for name in ("group", "prompt", "completion", "prompts"))
    way = str(found.get("head") or found.get("path"))
    precision = PRECISIONS.index(found.get("precision", "fp32"))
    size = (list(SIZES).index(found["model"]), shape[0] == 1, *shape)
    return (found["threads"], precision, *size, way)


def table(rows: Sequence[dict[str, Any]], extra: Sequence[str]) -> str:
    """The rows as a Markdown table; bytes in MB."""
    heads = ["threads", "model", "P, C, G, prompts", "ours s", "TRL s", "ratio", "95 %", *extra]
    lines = [heads, ["---"] * len(heads)]
    for each in rows:
        wide = "" if each["low"] is None else "{low:.2f} to {high:.2f}".format(**each)
        size = "{prompt}, {completion}, {group}, {prompts}".format(**each)
        figures = ["{ours_seconds:.3f}", "{trl_seconds:.3f}", "{ratio:.2f}"]
        more = [shown(name, each.get(name, "")) for name in extra]
        told = [str(each["threads"]), each["model"], size]
        lines.append([*told, *(f.format(**each) for f in figures), wide, *more])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def shown(name: str, value: Any) -> str:
    """A cell of the table."""
    if name.endswith("_bytes"):
        return f"{value / 1e6:.0f} MB"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def machine() -> str:
    """Processor, versions and load in words."""
    import torch

    names = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    kind = torch.backends.cpu.get_cpu_capability()
    load = f"load average {os.getloadavg()[0]:.1f}"
    return f"{names[0]} ({kind}), torch {torch.__version__}, TRL {TRL}, {load}"
