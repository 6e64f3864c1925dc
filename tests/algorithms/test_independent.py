"""Our values are those of independent implementations, kept with the command that made them.

Tolerances are those of float32: verl divides by a token count plus 1e-8.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from agentrecipes.testing import evaluate_algorithm
from tolerances import FLOAT32

ORACLES = Path(__file__).parents[1] / "oracles"
SAID = {name: json.loads((ORACLES / f"{name}.json").read_text()) for name in ("verl", "trl")}
CASES = [
    pytest.param(SAID[name]["inputs"][str(case["seed"])], case, id=f"{name}-{number}")
    for name in SAID
    for number, case in enumerate(SAID[name]["cases"])
]


@pytest.mark.parametrize(("inputs", "case"), CASES)
def test_advantages_loss_and_gradient_agree(inputs, case):
    arrays = {name: np.array(x) for name, x in inputs.items()}
    found = evaluate_algorithm(case["spec"], arrays)
    compared = [key for key in ("advantages", "loss", "gradient") if key in case]
    assert compared
    for key in compared:
        np.testing.assert_allclose(found[key], np.array(case[key]), **FLOAT32, err_msg=key)


@pytest.mark.parametrize("name", SAID)
def test_the_answers_cover_what_can_be_asked(name):
    asked = {case["spec"]["name"] for case in SAID[name]["cases"]}
    common = {"grpo", "dapo", "dr_grpo", "gspo", "sapo", "cispo"}
    assert common <= asked
    assert SAID[name]["command"].startswith("python tests/oracles/make_")
