"""The batch that the independent implementations are asked about, and how answers are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

ROWS, LENGTH = 6, 10
SPREAD = 0.4  # of log-ratios: ratios from about 0.4 to 2.5, so that every clip is met


def arrays(seed: int) -> dict[str, np.ndarray]:
    """Six rows of two groups, float64, with observation tokens between the action tokens."""
    random = np.random.default_rng(seed)
    mask = random.random((ROWS, LENGTH)) < 0.7
    mask[:, 0] = True
    logp_old = -1.0 + 0.5 * random.normal(size=mask.shape)
    return {
        "action_mask": mask,
        "logp": logp_old + SPREAD * random.normal(size=mask.shape),
        "logp_old": logp_old,
        "logp_ref": logp_old + SPREAD * random.normal(size=mask.shape),
        "logp_rollout": logp_old + SPREAD * random.normal(size=mask.shape),
        "values": random.normal(size=mask.shape),
        "values_old": random.normal(size=mask.shape),
        "returns": random.normal(size=ROWS),
        "group": np.array([0, 0, 0, 1, 1, 1]),
    }


def write(path: Path, *, source: str, command: str, cases: list[dict[str, Any]]) -> None:
    """The answers with what gave them, the command that asks again, and the inputs by seed."""
    inputs = {str(seed): arrays(seed) for seed in sorted({case["seed"] for case in cases})}
    content = {"source": source, "command": command, "cases": cases, "inputs": inputs}
    text = json.dumps(content, indent=1, default=lambda x: x.tolist())
    path.write_text(_compact(text) + "\n", encoding="utf-8")


def _compact(text: str) -> str:
    """Rows of numbers on one line each."""
    lines: list[str] = []
    for line in text.splitlines():
        word = line.strip()
        number = word.rstrip(",").lstrip("-")[:1].isdigit()
        joins = number or (word.startswith("]") and lines[-1].lstrip()[:1] in "-0123456789[")
        if lines and joins and lines[-1].count("[") == 1 + lines[-1].count("]"):
            lines[-1] += (" " if lines[-1].endswith(",") else "") + word
        else:
            lines.append(line)
    return "\n".join(lines)
