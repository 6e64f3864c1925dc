"""What each curriculum draws over 100 iterations, on recorded success rates, as one picture.

    python bench/curriculum_draws.py       # docs/results/curriculum_draws.svg, a few seconds

The rates are those by type that the default recipe had on dev after imitation, the mean over its
stored seeds; 400 training tasks, 32 an iteration, so that tasks come back.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import mean

from runs import RECIPE, RESULTS, ROOT

from agentrecipes.analysis.preview import Preview, preview
from agentrecipes.analysis.success_rates import Recorded, from_file
from agentrecipes.components import names
from agentrecipes.recipe.load import load

PICTURE = RESULTS / "curriculum_draws.svg"
ITERATIONS = 100
FIELDS = {
    "easy_to_hard": {"over": 80},
    "hard_pool": {"empty": "refill", "accept_from": 0.5},
    "stages": {
        "plan": [
            {"shares": {"chain-1": 1.0}},
            {"from": 30, "shares": {"chain-1": 0.5, "conjunction-3": 0.5}},
            {"from": 70, "shares": {"chain-3": 0.5, "conjunction-3": 0.5}},
        ]
    },
    "success_band": {"by": "type", "unknown": 0.25},
    "solvable": {"tries": 3},
    "weighted": {"weights": {"chain-1": 0.2, "conjunction-3": 3.0}},
}
COLOURS = ("#1d4ed8", "#60a5fa", "#bfdbfe", "#f59e0b", "#b45309")
WIDTH, HEIGHT, COLUMNS = 220, 110, 4  # of one plot


def rates() -> dict[str, float]:
    """Type → success rate after imitation."""
    runs = json.loads((RESULTS / "rag_r1.json").read_text())["seeds"]
    first = [
        next(
            row["by"]
            for row in made["evaluations"]
            if (row["stage"], row["split"], row["mode"]) == ("reinforce", "dev", "sampled")
        )
        for made in runs
    ]
    return {kind: mean(by[kind] for by in first) for kind in first[0]}


def drawn(name: str, known: Recorded) -> Preview:
    """The preview of a curriculum, with fields that show what it can do."""
    spec = json.dumps({"name": name, **FIELDS.get(name, {})})
    words = [f"stages.reinforce.curriculum={spec}", "environment.dataset.train=400"]
    recipe = load(ROOT / RECIPE, words)
    return preview(partial(recipe.stage, 1), known, iterations=ITERATIONS, seed=recipe.seed)


def plot(made: Preview, kinds: Sequence[str]) -> str:
    """Shares of the kinds, one upon the other, from left to right."""
    shares = [one.shares("type") for one in made.iterations]
    low = [0.0] * len(shares)
    pieces = []
    for kind, colour in zip(kinds, COLOURS, strict=True):
        high = [base + by.get(kind, 0.0) for base, by in zip(low, shares, strict=True)]
        edge = [*enumerate(high), *reversed(list(enumerate(low)))]
        points = " ".join(
            f"{WIDTH * x / (ITERATIONS - 1):.1f},{HEIGHT * (1 - y):.1f}" for x, y in edge
        )
        pieces.append(f'<polygon points="{points}" fill="{colour}"/>')
        low = high
    success = " ".join(
        f"{WIDTH * one.iteration / (ITERATIONS - 1):.1f},{HEIGHT * (1 - one.expected_success):.1f}"
        for one in made.iterations
    )
    line = f'<polyline points="{success}" fill="none" stroke="#111" stroke-width="1.4"/>'
    return "".join([*pieces, line])


def main() -> None:
    """Draw all of them."""
    known = rates()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rates.jsonl"
        lines = [json.dumps({"type": kind, "rate": rate}) for kind, rate in known.items()]
        file.write_text("\n".join(lines))
        tasks = load(ROOT / RECIPE).stages[1].environment.tasks("train")
        recorded = from_file(file, tasks)
    shipped = names("curriculum")
    marks = []
    for place, name in enumerate(shipped):
        x, y = 10 + place % COLUMNS * (WIDTH + 16), 24 + place // COLUMNS * (HEIGHT + 34)
        inside = plot(drawn(name, recorded), list(known))
        marks.append(f'<g transform="translate({x} {y})"><text y="-6">{name}</text>{inside}</g>')
    width = COLUMNS * (WIDTH + 16) + 4
    bottom = 24 + -(-len(shipped) // COLUMNS) * (HEIGHT + 34)
    for place, (kind, colour) in enumerate(zip(known, COLOURS, strict=True)):
        x = 10 + 178 * place
        marks.append(f'<rect x="{x}" y="{bottom - 12}" width="12" height="12" fill="{colour}"/>')
        marks.append(f'<text x="{x + 18}" y="{bottom - 2}">{kind}, {known[kind]:.2f}</text>')
    told = "shares of types over 100 iterations; the line: expected success"
    PICTURE.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 8}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="#555"><title>{told}</title>'
        f'<rect width="{width}" height="{bottom + 8}" fill="#ffffff"/>{"".join(marks)}</svg>\n'
    )
    print(PICTURE.relative_to(ROOT))


if __name__ == "__main__":
    main()
