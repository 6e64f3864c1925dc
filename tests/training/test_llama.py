"""A plain Llama's strip beside transformers' own modules."""

from __future__ import annotations

import pytest
import torch
from makers import llama as network
from makers import random_rows

from agentrecipes.training import llama
from agentrecipes.training.attention import install
from agentrecipes.training.llama import _Gated, _Norm, _Turned
from agentrecipes.training.pack import strip
from tolerances import BFLOAT16, FLOAT32


def outcome(kind: torch.dtype, *, plain: bool) -> list[torch.Tensor]:
    """Last hidden states of a strip, and the gradients of every weight below them."""
    rows = random_rows([9, 14, 5], 50)
    made, model = strip(rows, [row.weight > 0 for row in rows]), network().to(kind)
    install(model)
    if plain:
        states = llama.hidden(model, made)
    else:
        places = {"position_ids": made.positions, "segments": made.segments}
        states = model.model(input_ids=made.ids, use_cache=False, **places).last_hidden_state[0]
    weight = torch.randn(states.shape, generator=torch.Generator().manual_seed(1))
    (states * weight.to(kind)).mean().backward()
    gradients = [each.grad for each in model.model.parameters()]
    return [states, *(each for each in gradients if each is not None)]


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_states_and_gradients_are_those_of_transformers(kind):
    found, wanted = outcome(kind, plain=True), outcome(kind, plain=False)
    assert len(found) == len(wanted) == 1 + 1 + 2 * 9 + 1  # states, embedding, two layers, norm
    if kind == torch.float32:
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other, **FLOAT32)
        return
    # Each of some ten roundings to 8 bits; on average far less than that.
    gap = (found[0] - wanted[0]).abs().mean() / wanted[0].abs().mean()
    assert gap < BFLOAT16["rtol"]


def drawn(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()


def test_gradients_are_the_slopes():
    angle = drawn(5, 1, 3).detach()
    assert torch.autograd.gradcheck(lambda x, w: _Norm.apply(x, w, 0.1), (drawn(5, 4), drawn(4)))
    turned = (drawn(5, 2, 6),)
    assert torch.autograd.gradcheck(lambda x: _Turned.apply(x, angle.cos(), angle.sin()), turned)
    assert torch.autograd.gradcheck(_Gated.apply, (drawn(5, 3), drawn(3, 5).T))


def test_a_model_with_a_hook_or_with_dropout_takes_its_own_road():
    model = network()
    install(model)
    assert llama.is_plain(model)
    handle = model.model.layers[0].register_forward_hook(lambda *_: None)
    assert not llama.is_plain(model)
    handle.remove()
    model.config.attention_dropout = 0.1
    assert not llama.is_plain(model.train())
    assert llama.is_plain(model.eval())
