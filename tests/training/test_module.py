"""The module's figures, its passes, and what it refuses."""

from __future__ import annotations

import pytest
import torch
from makers import llama, row
from peft import LoraConfig, get_peft_model

from agentrecipes.components import build
from agentrecipes.models.value_head import fitted, restored
from agentrecipes.training.module import PolicyModule
from agentrecipes.training.pack import strip
from agentrecipes.training.update import Update
from tolerances import EXACT, FLOAT32

ROWS = [row([3, 1, 4, 1, 5], [2, 4], 0), row([9, 2, 6], [1, 2], 1)]


def packed():
    return strip(ROWS, [each.action_mask for each in ROWS])


@pytest.fixture
def module() -> PolicyModule:
    torch.manual_seed(0)
    return PolicyModule(llama(), torch.nn.Linear(32, 1))


def test_a_report_has_means_over_steps_and_extremes_and_counts_as_they_are(module):
    # Two optimizer steps of two micro-batches: shares add up within a step.
    for loss, norm in ((1.0, 3.0), (2.0, 5.0), (0.5, 4.0), (0.0, 1.0)):
        module._record({"loss/total": torch.tensor(loss), "norm_max": torch.tensor(norm)})
    module._record({"loss/skipped_steps": torch.ones(())})
    module._counted = 2
    # (1 + 2 + 0.5 + 0) / 2
    assert module.report() == {"loss/total": 1.75, "norm_max": 5.0, "loss/skipped_steps": 1.0}
    assert module.report() == {}


def test_a_report_before_any_step_divides_by_nothing(module):
    module._record({"loss/total": torch.tensor(0.75)})
    assert module.report() == {"loss/total": 0.75}


@torch.no_grad()
def test_values_and_entropies_are_given_where_they_are_asked_for(module):
    plain = module(packed())
    assert (plain.value, plain.entropy) == (None, None)
    full = module(packed(), value=True, entropy=True)
    torch.testing.assert_close(full.logp, plain.logp, **FLOAT32)
    value, entropy = torch.zeros(2, 5), torch.zeros(2, 5)  # 0 off the scored
    for number, each in enumerate(ROWS):
        states = module.model.model(torch.from_numpy(each.ids)[None]).last_hidden_state[0]
        logp = module.model.lm_head(states).log_softmax(-1)
        for place in each.action_mask.nonzero()[0].tolist():
            before = place - 1  # what was known when the token was chosen
            value[number, place] = module.value_head(states[before])[0]
            entropy[number, place] = -(logp[before].exp() * logp[before]).sum()
    torch.testing.assert_close(full.value, value, **FLOAT32)
    torch.testing.assert_close(full.entropy, entropy, **FLOAT32)
    assert float(full.entropy[0, 2]) > 1.0


@pytest.mark.parametrize("trunk", ["shared", "detached"])
def test_the_value_loss_reaches_the_model_only_where_they_share_it(module, trunk):
    algorithm = build("algorithm", {"name": "ppo", "value_trunk": trunk})
    module.update = Update(algorithm, 1.0, 1, lambda step: 1.0)
    module(packed(), value=True).value.square().sum().backward()
    assert float(module.value_head.weight.grad.abs().max()) > 0
    reached = [p.grad is not None and bool(p.grad.any()) for p in module.model.parameters()]
    assert any(reached) == (trunk == "shared")


def test_a_critic_on_its_own_trunk_begins_with_the_policys_values_and_learns_alone(module):
    critic = fitted(module.value_head, module.model, own=True)
    shared = module(packed(), value=True).value
    module.value_head = critic
    torch.testing.assert_close(module(packed(), value=True).value, shared, **EXACT)
    groups = {group["label"]: group["params"] for group in module.groups()}
    ours = {id(own) for own in groups["policy"]}
    assert not ours & {id(own) for own in groups["value"]}
    module(packed(), value=True).value.square().sum().backward()
    assert all(own.grad is None for own in groups["policy"])
    assert sum(bool(own.grad is not None and own.grad.any()) for own in groups["value"]) > 5


def test_a_critic_keeps_its_layer_when_a_stage_wants_another_trunk(module):
    own = fitted(module.value_head, module.model, own=True)
    assert fitted(own, module.model, own=True) is own
    assert fitted(own, module.model, own=False) is module.value_head
    with torch.no_grad():
        for tensor in own.parameters():
            tensor.add_(0.25)
    again = restored(own.state_dict(), module.model)
    for name, tensor in own.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], tensor, **EXACT)
    head = restored(module.value_head.state_dict(), module.model)
    torch.testing.assert_close(head.weight, module.value_head.weight, **EXACT)


def test_hits_are_where_the_most_likely_token_stands(module):
    likely = []
    with torch.no_grad():
        for each in ROWS:
            ids = torch.from_numpy(each.ids)[None]
            likely.append(module.model(ids).logits[0].argmax(-1))
    right = row([3, 1, int(likely[0][1]), 1, 5], [2, 4], 0)
    found = module.hits(strip([right, ROWS[1]], [right.action_mask, ROWS[1].action_mask]))
    assert bool(found[0, 2])
    for place in (1, 2):
        assert bool(found[1, place]) == (int(likely[1][place - 1]) == ROWS[1].ids[place])
    assert not found[0, 0]
    assert not found[1, 3:].any()


def test_the_reference_is_the_model_that_was_kept(module):
    other = llama()
    for parameter in other.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    module.keep_reference(other)
    expected = PolicyModule(other, None)(packed()).logp
    found = module(packed(), reference=True).logp
    torch.testing.assert_close(found, expected, **EXACT)
    assert not torch.equal(found, module(packed()).logp)
    names = [name for name, _ in module.named_parameters()]
    assert len(names) == len(list(llama().parameters())) + 2  # it is no part of what is trained


@torch.no_grad()
def test_with_an_adapter_the_reference_is_the_adapter_switched_off():
    config = LoraConfig(r=2, target_modules="all-linear", task_type="CAUSAL_LM")
    model = get_peft_model(llama(), config)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.2)
    module = PolicyModule(model, None)
    plain = PolicyModule(llama(), None)(packed()).logp
    torch.testing.assert_close(module(packed(), reference=True).logp, plain, **FLOAT32)
    assert float((module(packed()).logp - plain).abs().max()) > 1e-3
    assert all("lora_" in name for name, p in model.named_parameters() if p.requires_grad)
    assert len(module.groups()[0]["params"]) == sum(p.requires_grad for p in model.parameters())


def test_the_groups_are_policy_and_value(module):
    labels = {group["label"]: len(group["params"]) for group in module.groups()}
    assert labels == {"policy": len(list(module.model.parameters())), "value": 2}
    module.value_head = None
    assert [group["label"] for group in module.groups()] == ["policy"]


def test_a_module_without_update_or_optimizer_says_what_is_missing(module):
    with pytest.raises(RuntimeError, match="no optimizer"):
        module.configure_optimizers()
    with pytest.raises(RuntimeError, match="no update to do"):
        module._update()


def test_a_gradient_is_clipped_by_its_global_norm_and_the_norm_is_logged(module):
    parameters = [p for group in module.groups() for p in group["params"]]
    optimizer = torch.optim.SGD(parameters, lr=1.0)
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
    parameters[0].grad.view(-1)[0] = 3.0
    parameters[-1].grad.view(-1)[0] = 4.0
    module._empty = False
    module.configure_gradient_clipping(optimizer, 1.0)
    assert module.terms["policy/gradient_norm_max"] == pytest.approx(5.0, abs=1e-5)
    clipped = [float(parameters[n].grad.view(-1)[0]) for n in (0, -1)]
    assert clipped == pytest.approx([0.6, 0.8], abs=1e-5)
