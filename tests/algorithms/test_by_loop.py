"""Every algorithm equals loops over tokens, on 200 random cases in float64 within 1e-9.

A case draws the fields too, and is cut into micro-batches; loss, advantages, and the gradients by
log-probabilities and values are those of the loop.
"""

from __future__ import annotations

import pytest
import torch

from agentrecipes.components import names
from agentrecipes.testing.algorithm_suite import outputs_of, prepared, rows_of
from algorithms.draws import draw_case
from algorithms.loop_algorithms import ADVANTAGES, imitated, loss
from algorithms.loops import attempts
from algorithms.tape import fill_slopes
from tolerances import FLOAT64

CASES = 200
HUNDREDS = (0, 100)


def same(found, expected, where):
    expected = torch.tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(found, expected, **FLOAT64, msg=lambda text: f"{where}: {text}")


def our_loss_and_gradients(case, batch):
    shares = [(outputs_of(case.outputs, rows), rows_of(batch, rows)) for rows in case.split]
    total = torch.stack([case.algorithm.loss(*share).total for share in shares]).sum()
    inputs = (case.outputs.logp, case.outputs.value)
    slopes = torch.autograd.grad(total, inputs, allow_unused=True, materialize_grads=True)
    return total.detach(), slopes


def test_every_algorithm_has_its_second_road():
    assert {*ADVANTAGES, "sft"} == set(names("algorithm"))


@pytest.mark.parametrize("start", HUNDREDS)
@pytest.mark.parametrize("name", sorted(ADVANTAGES))
def test_it_equals_a_loop_over_tokens(name, start):
    for seed in range(start, start + CASES // len(HUNDREDS)):
        case = draw_case(name, seed)
        batch = prepared(case.algorithm, case.batch)
        by_hand = attempts(batch, case.outputs)
        expected = ADVANTAGES[name](case.algorithm, by_hand, batch.kl_coefficient)
        right = loss(case.algorithm, by_hand, expected, batch.kl_coefficient)
        fill_slopes(right)
        total, slopes = our_loss_and_gradients(case, batch)
        tokens = [token for one in by_hand for token in one.tokens]
        at = tuple(torch.tensor([(token.row, token.place) for token in tokens]).T)
        where = f"seed {seed}, {case.algorithm}"
        same(batch.advantage[at], [value for row in expected for value in row], where)
        same(total, float(right), where)
        same(slopes[0][at], [token.logp.slope for token in tokens], where)
        same(slopes[1][at], [token.value.slope for token in tokens], where)
        assert not any(slope[~batch.action_mask].any() for slope in slopes)


def test_sft_equals_a_loop_over_tokens():
    for seed in range(CASES):
        case = draw_case("sft", seed)
        expected, by_token = imitated(case.batch, case.outputs)
        total, (found, _) = our_loss_and_gradients(case, case.batch)
        same(total, expected, seed)
        same(found, by_token, seed)
