"""FunReason's multiscale loss beside plain fine-tuning, on generated function calls, by seed.

    python bench/multiscale.py                         # seeds 7, 0 and 1, both losses
    python bench/multiscale.py --seeds 7 --workers 2 --out figures.json

Both are `recipes/funreason.yaml`, the plain loss by its profile; all else is equal. Told is the
share of right calls on dev, sampled, after the imitation (where the losses alone differ) and at the
end. The exit code is 1 where the multiscale loss is not ahead after the imitation on the mean of
the seeds.
"""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from runs import run, value

LOSSES = {"multiscale": [], "plain": ["--profile", "plain"]}


def job(loss: str, seed: int) -> dict[str, Any]:
    """One run's figures."""
    made = run(["recipes/funreason.yaml", *LOSSES[loss], f"seed={seed}"])
    imitated, end = (value(made, "dev", "sampled", last=last) for last in (False, True))
    print(f"{loss} seed {seed}: imitated {imitated:.3f}, at the end {end:.3f}", flush=True)
    return {"loss": loss, "imitated": imitated, "end": end, **made}


def mean(found: list[dict[str, Any]], loss: str, key: str) -> float:
    """Over the seeds."""
    own = [one[key] for one in found if one["loss"] == loss]
    return sum(own) / len(own)


def main() -> None:
    """Run both losses on the seeds; tell, and write where that is asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="7,0,1")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    jobs = [(loss, int(seed)) for seed in asked.seeds.split(",") for loss in LOSSES]
    with ThreadPoolExecutor(asked.workers) as pool:
        found = list(pool.map(lambda each: job(*each), jobs))
    for loss in LOSSES:
        told = ", ".join(f"{key} {mean(found, loss, key):.3f}" for key in ("imitated", "end"))
        print(f"{loss}: {told}")
    if asked.out:
        asked.out.write_text(json.dumps(found, indent=1) + "\n")
    sys.exit(mean(found, "multiscale", "imitated") <= mean(found, "plain", "imitated"))


if __name__ == "__main__":
    main()
