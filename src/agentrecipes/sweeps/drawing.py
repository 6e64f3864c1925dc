"""Drawings of a study as SVG text: points over an axis, bars. No script, no network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from agentrecipes.tracking.report.plot import nice_ticks

WIDTH, HEIGHT = 360, 220
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 12, 40


@dataclass(frozen=True, slots=True)
class Mark:
    """A point with what it says: ``Mark(1e-3, 0.8, "trial 4", "best")``."""

    x: float | str  # a text stands at a place of its own
    y: float
    title: str
    kind: str = "done"  # a class of the style sheet


@dataclass(frozen=True, slots=True)
class Scatter:
    """Points between two named axes; `log` for the lower one, `joined` for a line through them."""

    title: str
    x_name: str
    y_name: str
    marks: Sequence[Mark]
    log: bool = False
    joined: bool = False

    def svg(self) -> str:
        """The drawing."""
        shares = self._shares()
        ticks = _ticks([mark.y for mark in self.marks])
        low, high = ticks[0], ticks[-1]
        xs = [LEFT + share * (WIDTH - LEFT - RIGHT) for share in shares]
        ys = [_down((mark.y - low) / (high - low)) for mark in self.marks]
        parts = [
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="y" x="{LEFT - 6}" y="{y + 4:.1f}">{tick:.4g}</text>'
            for tick in ticks
            for y in (_down((tick - low) / (high - low)),)
        ]
        parts += [
            f'<text class="x" x="{LEFT + share * (WIDTH - LEFT - RIGHT):.1f}" '
            f'y="{HEIGHT - BOTTOM + 16}">{escape(text)}</text>'
            for share, text in self._x_ticks()
        ]
        if self.joined and len(xs) > 1:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
            parts.append(f'<polyline class="best" points="{path}"/>')
        parts += [
            f'<circle class="{mark.kind}" cx="{x:.1f}" cy="{y:.1f}" r="4.5">'
            f"<title>{escape(mark.title)}</title></circle>"
            for mark, x, y in zip(self.marks, xs, ys, strict=True)
        ]
        middle = LEFT + (WIDTH - LEFT - RIGHT) / 2
        parts.append(f'<text class="x" x="{middle}" y="{HEIGHT - 6}">{escape(self.x_name)}</text>')
        return _figure(self.title, self.y_name, "".join(parts))

    def _shares(self) -> list[float]:
        """Where each point stands between left (0) and right (1)."""
        if self._names:
            places = {name: (i + 0.5) / len(self._names) for i, name in enumerate(self._names)}
            return [places[str(mark.x)] for mark in self.marks]
        low, high = self._ends
        return [(self._scaled(mark.x) - low) / (high - low) for mark in self.marks]

    @property
    def _names(self) -> list[str]:
        """The texts on the lower axis; none where it has numbers."""
        texts = any(isinstance(mark.x, str) for mark in self.marks)
        return list(dict.fromkeys(str(mark.x) for mark in self.marks)) if texts else []

    @property
    def _ends(self) -> tuple[float, float]:
        values = [self._scaled(mark.x) for mark in self.marks]
        low, high = min(values), max(values)
        return (low, high) if high > low else (low - 0.5, high + 0.5)

    def _scaled(self, x: float | str) -> float:
        return math.log10(float(x)) if self.log else float(x)

    def _x_ticks(self) -> list[tuple[float, str]]:
        if self._names:
            count = len(self._names)
            return [((i + 0.5) / count, name[:24]) for i, name in enumerate(self._names)]
        low, high = self._ends
        values = [low + share * (high - low) for share in (0.0, 0.5, 1.0)]
        shown = [10**value if self.log else value for value in values]
        return [(share, f"{v:.3g}") for share, v in zip((0.0, 0.5, 1.0), shown, strict=True)]


def bars(title: str, shares: Sequence[tuple[str, float]]) -> str:
    """Named shares as bars, the largest first."""
    step = 30
    rows = []
    for index, (name, share) in enumerate(sorted(shares, key=lambda each: -each[1])):
        y = TOP + index * step
        width = max(1.0, share * (WIDTH - 60))
        rows.append(
            f'<text class="name" x="4" y="{y + 10}">{escape(name)}</text>'
            f'<rect class="bar" x="4" y="{y + 14}" width="{width:.1f}" height="9"/>'
            f'<text class="name" x="{width + 10:.1f}" y="{y + 23}">{share:.0%}</text>'
        )
    return _figure(title, "", "".join(rows), height=TOP + step * len(shares) + 8)


def _down(share: float) -> float:
    return TOP + (1 - share) * (HEIGHT - TOP - BOTTOM)


def _ticks(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    return nice_ticks(low, high) if high > low else nice_ticks(low - 0.5, high + 0.5)


def _figure(title: str, y_name: str, inside: str, *, height: int = HEIGHT) -> str:
    caption = f"{title}: {y_name}" if y_name else title
    return (
        f"<figure><figcaption>{escape(caption)}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(caption)}">'
        f"{inside}</svg></figure>"
    )
