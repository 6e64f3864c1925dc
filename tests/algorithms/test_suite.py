"""Every algorithm passes the conformance suite: as it stands, and with every optional term on."""

from __future__ import annotations

import pytest

from agentrecipes.components import build, find, names
from agentrecipes.testing import AlgorithmSuite

TERMS = {
    "kl": {"place": "loss", "coefficient": 0.05},
    "entropy": 0.01,
    "importance": {"cap": 1.1, "level": "sequence"},
    "value_clip": 0.2,
    "dual_clip": 2.0,
}
PENALTY = {"kl": {"place": "reward", "coefficient": 0.05}, "importance": {"cap": 1.1}}


def with_fields(name, values):
    """The algorithm with those of `values` that it has."""
    known = find("algorithm", name).model_fields
    return build("algorithm", {"name": name, **{k: v for k, v in values.items() if k in known}})


VARIANTS = {"plain": {}, "terms": TERMS, "penalty": PENALTY, "sums": {}}


class TestAlgorithms(AlgorithmSuite):
    @pytest.fixture(params=VARIANTS)
    def variant(self, request):
        return request.param

    @pytest.fixture(params=names("algorithm"))
    def algorithm(self, request, variant):
        values = VARIANTS[variant]
        if variant == "sums":
            values = {"aggregation": "sequence_sum_norm", "max_tokens": 16}
        return with_fields(request.param, values)
