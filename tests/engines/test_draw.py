"""Drawing by the inverse distribution function: by hand, and by a plain loop."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agentrecipes.engines.draw import Ways, draw
from agentrecipes.engines.protocol import Request
from tolerances import FLOAT32

ALMOST_ONE = 1 - 2**-53  # the largest number that a stream can give


def drawn(logits, uniforms, temperature=1.0, top_p=1.0):
    requests = [
        Request((1,), (), 1, temperature=temperature, top_p=top_p) for _ in range(len(uniforms))
    ]
    rows = torch.tensor(logits).expand(len(uniforms), -1)
    ways = Ways.of(requests, torch.device("cpu"))
    return draw(rows, torch.tensor(uniforms, dtype=torch.float64), ways)


SHARES = [0.1, 0.0, 0.6, 0.3]
LOGITS = [torch.tensor(share).log().item() for share in SHARES]


def test_a_uniform_number_picks_the_token_whose_share_of_the_line_it_is_on():
    # the line: token 0 up to 0.1, token 1 nowhere, token 2 up to 0.7, token 3 up to 1
    ids, logp = drawn(LOGITS, [0.0, 0.09, 0.11, 0.69, 0.71, ALMOST_ONE])
    assert ids.tolist() == [0, 0, 2, 2, 3, 3]
    expected = torch.tensor([SHARES[one] for one in ids]).log()
    torch.testing.assert_close(logp, expected, **FLOAT32)


def test_a_token_without_probability_is_never_drawn():
    ids, _ = drawn([-torch.inf, 0.0, -torch.inf], [0.0, ALMOST_ONE])
    assert ids.tolist() == [1, 1]


def test_temperature_sharpens_the_draw_and_its_logp():
    # shares ** 2: 0.01, 0.36, 0.09 of 0.46, so that token 2 reaches to 0.37 / 0.46 = 0.804
    ids, logp = drawn(LOGITS, [0.80, 0.81], temperature=0.5)
    assert ids.tolist() == [2, 3]
    torch.testing.assert_close(logp.exp(), torch.tensor([0.36, 0.09]) / 0.46, **FLOAT32)


def test_top_p_keeps_the_fewest_tokens_that_reach_it_and_logp_stays_whole():
    # 0.6 is less than 0.75 and 0.9 is not: tokens 2 and 3 stay, with shares 2/3 and 1/3
    ids, logp = drawn(LOGITS, [0.0, 0.66, 0.67, ALMOST_ONE], top_p=0.75)
    assert ids.tolist() == [2, 2, 3, 3]
    torch.testing.assert_close(logp.exp(), torch.tensor([0.6, 0.6, 0.3, 0.3]), **FLOAT32)
    ids, _ = drawn(LOGITS, [0.0, ALMOST_ONE], top_p=0.5)
    assert ids.tolist() == [2, 2]


def test_greedy_takes_the_first_of_the_likeliest():
    ids, logp = drawn([0.0, 2.0, 2.0, 1.0], [0.99], temperature=0.0)
    assert ids.tolist() == [1]
    torch.testing.assert_close(logp, torch.log_softmax(torch.tensor([[0.0, 2, 2, 1]]), 1)[:, 1])


@given(st.integers(1, 300), st.integers(0, 2**31), st.floats(0, ALMOST_ONE))
def test_the_draw_in_blocks_is_that_of_a_loop_over_tokens(size, seed, uniform):
    logits = torch.randn(size, generator=torch.Generator().manual_seed(seed)) * 3
    [token] = drawn(logits.tolist(), [uniform])[0].tolist()
    shares = torch.log_softmax(logits, 0).exp().double().tolist()
    before = sum(shares[:token]) / sum(shares)
    after = sum(shares[: token + 1]) / sum(shares)
    slack = 1e-12  # of the order in which doubles are added
    assert before - slack <= uniform <= after + slack


@pytest.mark.parametrize("uniform", [0.0, 0.5, ALMOST_ONE])
def test_the_rows_of_a_batch_do_not_touch_each_other(uniform):
    torch.manual_seed(0)
    logits = torch.randn(5, 100)
    ways = Ways.of(
        [Request((1,), (), 1, temperature=t, top_p=p) for t, p in
         [(1.0, 1.0), (0.0, 1.0), (2.0, 0.5), (0.5, 0.9), (1.0, 0.1)]],
        torch.device("cpu"),
    )  # fmt: skip
    uniforms = torch.full((5,), uniform, dtype=torch.float64)
    together, _ = draw(logits, uniforms, ways)
    for row in range(5):
        one = torch.tensor([row])
        alone, _ = draw(logits[one], uniforms[one], ways.rows(one))
        assert alone.tolist() == [together[row].item()]
