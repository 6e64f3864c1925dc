"""The recipe of Agentic-RAG-R1: what its environment is worth, and the published settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrecipes.recipe.load import check, load
from agentrecipes.rollout.play import play
from agentrecipes.rollout.score import score_view

RECIPE = Path(__file__).parents[2] / "recipes" / "agentic_rag_r1.yaml"


@pytest.fixture(scope="module")
def paper():
    recipe, problems = check(RECIPE, profile="paper")
    assert [problem for problem in problems if problem.severity == "error"] == []
    return recipe


def test_an_oracle_scores_one_and_a_random_agent_far_less():
    stage = load(RECIPE).stage(1)
    world = stage.environment
    means = {}
    for name, make in (("oracle", world.oracle), ("random", lambda task: world.random(task, 7))):
        played = [
            play(world, task, agent=make, seed=seed)
            for seed, task in enumerate(world.tasks("dev")[:20])
        ]
        totals = [score_view(one.view, stage.rewards).total for one in played]
        means[name] = sum(totals) / len(totals)
    assert means["oracle"] == 1.0
    assert means["random"] < 0.2


def test_the_paper_s_policy_is_an_adapter_on_four_bits(paper):
    model, trainer = paper.fields.model, paper.stage(1).trainer
    assert (model.quantize, model.dtype) == ("nf4", "bf16")
    assert (model.lora.rank, model.lora.alpha, model.lora.dropout) == (4, 32, 0.1)
    assert model.lora.targets == ("q_proj", "v_proj")
    assert (trainer.strategy, trainer.precision) == ("deepspeed_2", "bf16")


def test_the_paper_s_update_is_theirs(paper):
    stage = paper.stage(1)
    grpo, rollout = stage.algorithm, stage.rollout
    # the ratio may move in 0.90 to 1.15; KL by k3 with 0.04; two passes over a batch
    assert (1 - grpo.clip_low, 1 + grpo.clip_high) == (0.9, 1.15)
    assert (grpo.kl.place, grpo.kl.estimator, grpo.kl.coefficient) == ("loss", "k3", 0.04)
    assert (grpo.epsilon, stage.trainer.epochs, stage.iterations) == (1e-4, 2, 300)
    assert (stage.optimizer.learning_rate, stage.trainer.checkpoint_every) == (5e-6, 20)
    assert (rollout.group_size, rollout.temperature) == (4, 0.7)
    assert (rollout.tokens_per_turn, rollout.tokens) == (500, 4000)


def test_the_paper_s_loop_takes_back_the_turn_before(paper):
    world = paper.stage(1).environment
    assert (world.max_turns, world.protocol.result_characters) == (8, 500)
    assert (world.context.policy, world.context.summary) == ("stack", "last")
    weights = [entry.weight for entry in paper.stage(1).rewards]
    assert weights == [3.0, 1.0, 2.0]  # accuracy, form, how the first observation bears on it
