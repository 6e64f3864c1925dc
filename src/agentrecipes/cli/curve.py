"""A curve as text: filled columns of block characters, at most 80 wide."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

EIGHTHS = " ▁▂▃▄▅▆▇█"

Points = Sequence[tuple[float, float]]
"""(iteration, score), iterations ascending."""


def curve(points: Points, *, title: str, width: int = 80, height: int = 10) -> str:
    """The score over iterations, as lines of text; "" where there are fewer than two points.

    The axis runs from 0 to 1 where every score lies there, else over the scores' own range.
    """
    kept = [(x, y) for x, y in points if y == y]  # NaN is not drawn
    if len(kept) < 2 or kept[0][0] == kept[-1][0]:
        return ""
    low, high = _bounds([y for _, y in kept])
    labels = {height: f"{high:.2f}", height // 2: f"{(low + high) / 2:.2f}", 0: f"{low:.2f}"}
    margin = max(map(len, labels.values()))
    columns = width - margin - 2
    heights = [(value - low) / (high - low) * height * 8 for value in _resample(kept, columns)]
    lines = [title]
    for row in reversed(range(height)):
        cells = "".join(_cell(eighths - row * 8) for eighths in heights)
        lines.append(f"{labels.get(row + 1, ''):>{margin}} │{cells}".rstrip())
    lines.append(f"{labels[0]:>{margin}} └{'─' * columns}")
    first, last = f"{kept[0][0]:g}", f"iteration {kept[-1][0]:g}"
    lines.append(f"{'':>{margin}}  {first}{last:>{columns - len(first)}}")
    return "\n".join(lines)


def strip(values: Sequence[float], *, top: float, width: int) -> str:
    """Values from 0 to `top` as one line of text, a column being the mean of what falls into it.

    Anything above 0 is at least an eighth high.
    """
    columns = min(width, len(values))
    cells = []
    for column in range(columns):
        first, end = column * len(values) // columns, (column + 1) * len(values) // columns
        mean = sum(values[first:end]) / (end - first)
        cells.append(EIGHTHS[0] if mean <= 0 else _cell(max(1.0, mean / top * 8)))
    return "".join(cells)


def _bounds(values: list[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    if low >= 0.0 and high <= 1.0:
        return 0.0, 1.0
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def _cell(eighths: float) -> str:
    return EIGHTHS[max(0, min(8, round(eighths)))]


def _resample(points: Points, columns: int) -> list[float]:
    """The curve's height in each column, by linear interpolation between points."""
    xs = [x for x, _ in points]
    values = []
    for column in range(columns):
        x = xs[0] + (xs[-1] - xs[0]) * column / (columns - 1)
        right = min(max(bisect_right(xs, x), 1), len(xs) - 1)
        (x0, y0), (x1, y1) = points[right - 1], points[right]
        share = 0.0 if x1 == x0 else (x - x0) / (x1 - x0)
        values.append(y0 + (y1 - y0) * share)
    return values
