"""What a run shows while it works, on stderr: live on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.progress import TimeRemainingColumn as TimeLeft

PLAIN_EVERY_SECONDS = 10.0  # between two plain lines of one stage
SHOWN = ("loss/total", "loss", "rollout/score", "reward/total")


class Watch:
    """Collects what the final curve needs, and hands each event to a display."""

    def __init__(self, display: Live | Lines) -> None:
        self._display = display
        self.rows: list[dict[str, Any]] = []

    def stage(self, name: str, algorithm: str, total: int) -> None:
        """A stage of `total` steps or iterations begins."""
        self._display.stage(name, algorithm, total)

    def advance(self, step: int, figures: Mapping[str, float]) -> None:
        """`step` of the stage is done."""
        self._display.advance(step, dict(figures))

    def evaluation(self, row: Mapping[str, Any]) -> None:
        """An evaluation, with the keys of the summary."""
        self.rows.append(dict(row))
        self._display.evaluation(dict(row))

    def note(self, text: str) -> None:
        """Something the reader of the log should know."""
        self._display.note(text)

    def __enter__(self) -> Self:
        self._display.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._display.close()


def watch() -> Watch:
    """A watcher that fits stderr: live on a terminal, lines elsewhere."""
    console = Console(stderr=True)
    return Watch(Live(console) if console.is_terminal else Lines())


class Live:
    """One line per stage with a bar, the last sampled score and the time left."""

    def __init__(self, console: Console) -> None:
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeLeft(),
            console=console,
        )
        self._current: TaskID | None = None
        self._score, self._losses, self._total = "", "", 0

    def open(self) -> None:
        """Start drawing."""
        self._bars.start()

    def close(self) -> None:
        """Leave the lines as they are."""
        self._bars.stop()

    def stage(self, name: str, algorithm: str, total: int) -> None:
        """Add the stage's line."""
        self._losses, self._total = "", total
        self._current = self._bars.add_task(
            f"{name} ({algorithm})", total=total, figures=self._score
        )

    def advance(self, step: int, figures: dict[str, float]) -> None:
        """Move the stage's bar."""
        self._losses = shown_figures(figures)
        self._total = max(self._total, step)  # a stage that is extended has no known end
        self._draw(completed=step, total=self._total)

    def evaluation(self, row: dict[str, Any]) -> None:
        """Remember the sampled score; it stands beside the bar."""
        if row.get("mode") == "sampled":
            self._score = f"{row['metric']} {row['value']:.3f}"
            self._draw()

    def note(self, text: str) -> None:
        """Print above the lines."""
        self._bars.console.print(text, markup=False, highlight=False)

    def _draw(self, **changes: Any) -> None:
        if self._current is not None:
            figures = "  ".join(text for text in (self._score, self._losses) if text)
            self._bars.update(self._current, figures=figures, **changes)


class Lines:
    """Plain lines for logs: a stage's begin, one line now and then, every evaluation."""

    def __init__(
        self,
        write: Callable[[str], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write if write is not None else _stderr
        self._clock = clock
        self._name, self._total, self._begun, self._last = "", 0, 0.0, 0.0

    def open(self) -> None:
        """Nothing to start."""

    def close(self) -> None:
        """Nothing to end."""

    def stage(self, name: str, algorithm: str, total: int) -> None:
        """One line."""
        self._name, self._total = name, total
        self._begun = self._last = self._clock()
        self._write(f"{name}: {algorithm}, {total} to do")

    def advance(self, step: int, figures: dict[str, float]) -> None:
        """A line when the last one is old enough, and at the end of the stage."""
        now = self._clock()
        if step != self._total and now - self._last < PLAIN_EVERY_SECONDS:
            return
        self._last = now
        self._total = max(self._total, step)  # a stage that is extended has no known end
        left = (now - self._begun) / max(step, 1) * (self._total - step)
        text = shown_figures(figures)
        self._write(f"{self._name}: {step}/{self._total}  {text}  {duration(left)} left")

    def evaluation(self, row: dict[str, Any]) -> None:
        """One line."""
        self._write(evaluation_line(row))

    def note(self, text: str) -> None:
        """One line."""
        self._write(text)


def _stderr(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def shown_figures(figures: Mapping[str, float]) -> str:
    """The two or three figures worth a glance."""
    chosen = [key for key in SHOWN if key in figures] or list(figures)[:2]
    return "  ".join(f"{key} {figures[key]:.4g}" for key in chosen)


def evaluation_line(row: Mapping[str, Any]) -> str:
    """An evaluation in one line: ``reinforce 10  dev sampled  exact_match 0.840 (150 tasks)``."""
    error = row.get("standard_error")
    spread = f" ± {error:.3f}" if isinstance(error, float) else ""
    value = "null" if row.get("value") is None else f"{row['value']:.3f}"
    head = f"{row['stage']} {row['iteration']}  {row['split']} {row['mode']}"
    return f"{head}  {row['metric']} {value}{spread} ({row['tasks']} tasks)"


def duration(seconds: float) -> str:
    """Seconds for people: ``42s``, ``3m05s``, ``2h07m``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
