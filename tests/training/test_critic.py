"""A fresh critic begins at the mean target, and is left alone from then on."""

from __future__ import annotations

from dataclasses import replace

import torch
from makers import row, trajectory, turn

from agentrecipes.components import build
from agentrecipes.models.tiny import Tiny
from agentrecipes.models.value_head import value_head
from agentrecipes.records import Scored
from agentrecipes.training.batch import collected_batch
from agentrecipes.training.critic import centred


def scored(rewards):
    attempts = [trajectory(turn([1, 2], [3, 4]), attempt=n) for n in range(len(rewards))]
    return [
        Scored(each, {}, reward, (reward,)) for each, reward in zip(attempts, rewards, strict=True)
    ]


def collected(rewards):
    rows = [row([1, 2, 3, 4], [2, 3], n) for n in range(len(rewards))]
    batch = collected_batch(rows, scored(rewards), 0.0)
    return replace(batch, values_old=torch.zeros(batch.action_mask.shape))


def fresh():
    return value_head(Tiny().build(0).config)


PPO = build("algorithm", {"name": "ppo", "whiten": False})


def test_it_begins_at_the_mean_return_and_advantages_add_up_to_zero():
    head, batch = fresh(), collected([1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    made = centred(head, batch, PPO)
    assert head.bias.item() == 0.375
    assert made.values_old[batch.action_mask].tolist() == [0.375] * 16
    assert not made.values_old[~batch.action_mask].any()
    assert PPO.advantages(made).sum().abs() < 1e-6


def test_a_constant_reward_has_no_advantage_from_the_start():
    made = centred(fresh(), collected([1.0] * 4), PPO)
    assert not PPO.advantages(made).any()


def test_a_critic_that_has_learned_something_is_left_alone():
    head, batch = fresh(), collected([1.0, 0.0])
    with torch.no_grad():
        head.weight[0, 3] = 0.1
    assert centred(head, batch, PPO) is batch
    assert head.bias.item() == 0.0


def test_without_a_critic_nothing_happens():
    batch = collected([1.0, 0.0])
    assert centred(None, batch, PPO) is batch
