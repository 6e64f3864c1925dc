"""Our losses and gradients are those of independent implementations.

Their answers are stored with the command that asks them again, ``make oracles``, which asks about
200 cases of each algorithm and writes docs/results/parity.md.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from agentrecipes.testing import evaluate_algorithm
from tolerances import ORACLE

ROOT = Path(__file__).parents[2]
SAID = json.loads((ROOT / "tests" / "oracles" / "sample.json").read_text(encoding="utf-8"))
RESULTS = json.loads((ROOT / "docs" / "results" / "parity.json").read_text(encoding="utf-8"))


def label(case):
    return f"{case['spec']['name']}-{case['source'].split()[0]}-{case['seed']}"


@pytest.mark.parametrize("case", SAID["cases"], ids=label)
def test_loss_and_gradient_agree(case):
    arrays = {name: np.array(x) for name, x in SAID["inputs"][str(case["seed"])].items()}
    mask = arrays["action_mask"]
    if "advantages" in case:  # given to both sides; value targets follow from them
        arrays = {k: x for k, x in arrays.items() if k not in ("turn_rewards", "turn_index")}
        arrays["advantages"] = np.zeros(mask.shape)
        arrays["advantages"][mask] = case["advantages"]
    found = evaluate_algorithm(case["spec"], arrays, micro_batches=case["micro_batches"])
    np.testing.assert_allclose(found["loss"], case["loss"], **ORACLE)
    np.testing.assert_allclose(found["gradient"][mask], case["gradient"], **ORACLE)
    assert not found["gradient"][~mask].any()


@pytest.mark.parametrize("source", ["verl 0.9.1", "trl 1.16.0", "openrlhf 0.11.2"])
def test_the_answers_cover_what_can_be_asked(source):
    common = {"grpo", "dapo", "gspo"}
    stored = [case for case in SAID["cases"] if case["source"].startswith(source)]
    assert common <= {case["spec"]["name"] for case in stored}
    assert SAID["about"]["command"] == "make oracles"
    reported = [row for row in RESULTS["rows"] if row["source"].startswith(source)]
    assert {row["algorithm"] for row in reported} == {case["spec"]["name"] for case in stored}


def test_the_published_gaps_are_below_their_limits_on_two_hundred_cases():
    assert RESULTS["limits"] == {"float32": 1e-6, "float64": 1e-7}
    for row in RESULTS["rows"]:
        assert row["cases"] >= 200
        for kind, limit in RESULTS["limits"].items():
            assert max(row["loss"][kind], row["gradient"][kind]) <= limit
