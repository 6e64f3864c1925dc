"""Every algorithm equals loops over tokens, on random batches with forked trajectories."""

from __future__ import annotations

import pytest
import torch

from agentrecipes.components import names
from agentrecipes.testing.algorithm_suite import KL_COEFFICIENT, moved, prepared, random_batch
from algorithms.loop_algorithms import ADVANTAGES, loss
from algorithms.loops import attempts
from algorithms.test_suite import PENALTY, TERMS, with_fields
from tolerances import FLOAT64

DISCOUNTED = {
    **{"gamma": 0.9, "lam": 0.8, "whiten": False, "std": "population"},
    **{"aggregation": "token_mean", "kl": {"place": "loss", "estimator": "k2"}},
}
UNBOUNDED = {
    **{"clip_low": None, "clip_high": None, "std": "none", "whiten": True},
    **{"aggregation": "sequence_sum_norm", "max_tokens": 11},
    **{"kl": {"place": "reward", "estimator": "k3"}},
}
VARIANTS = {"plain": {}, "terms": TERMS, "penalty": PENALTY, "d": DISCOUNTED, "u": UNBOUNDED}


def test_every_algorithm_that_collects_has_its_second_road():
    assert set(ADVANTAGES) == set(names("algorithm")) - {"sft"}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", sorted(ADVANTAGES))
def test_it_equals_a_loop_over_tokens(name, variant):
    algorithm = with_fields(name, VARIANTS[variant])
    for seed in range(50):
        outputs = moved(random_batch(seed), seed)
        batch = prepared(algorithm, random_batch(seed))
        by_hand = attempts(batch, outputs)
        expected = ADVANTAGES[name](algorithm, by_hand, KL_COEFFICIENT)
        for one, values in zip(by_hand, expected, strict=True):
            found = torch.stack([batch.advantage[token.row, token.place] for token in one.tokens])
            torch.testing.assert_close(found, found.new_tensor(values), **FLOAT64)
        total = algorithm.loss(outputs, batch).total.detach()
        right = loss(algorithm, by_hand, expected, KL_COEFFICIENT)
        torch.testing.assert_close(total, total.new_tensor(right), **FLOAT64)


def test_sft_equals_a_loop_over_tokens():
    algorithm = with_fields("sft", {})
    for seed in range(50):
        batch, outputs = random_batch(seed), moved(random_batch(seed), seed)
        pairs = zip(batch.token_weight.flatten(), outputs.logp.detach().flatten(), strict=True)
        expected = -sum(float(weight) * float(logp) for weight, logp in pairs) / 10.0
        total = algorithm.loss(outputs, batch).total.detach()
        torch.testing.assert_close(total, total.new_tensor(expected), **FLOAT64)
