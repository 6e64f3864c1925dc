"""What recipes turn beside the default: every knob does in a whole run what it says."""

from __future__ import annotations

import math

import pytest
import torch
from knobs import BASIS, algorithm, curve, ran, trained_rows, weights
from small import RECIPE, SMALL, experiment, small
from test_resume import interrupted, rows, same

from agentrecipes.experiment import run
from agentrecipes.models.tiny import Tiny
from agentrecipes.recipe.load import load


@pytest.mark.parametrize("place", ["loss", "reward"])
def test_kl_is_measured_against_a_reference_that_stays_while_the_policy_moves(tmp_path, place):
    kl = algorithm(f"name: grpo, kl: {{place: {place}, coefficient: 0.1}}")
    ran(tmp_path / "whole", kl)
    measured = curve(tmp_path / "whole", "loss/kl")
    # The reference is the policy as the stage begins: nothing at first, then something.
    assert measured[0] == pytest.approx(0.0, abs=1e-6)
    assert abs(measured[1]) > 1e-5
    name = "checkpoints/reference-1.pt"
    reference = torch.load(tmp_path / "whole" / name, weights_only=True)
    final = weights(tmp_path / "whole")
    assert max(float((final[n] - t).abs().max()) for n, t in reference.items()) > 1e-5
    # A resumed stage compares with the same one: the policy is another one by then.
    assert interrupted(tmp_path / "cut", "reinforce", 1, *BASIS, kl) == "interrupted"
    before = (tmp_path / "cut" / name).read_bytes()
    again = run(experiment(small(*BASIS, kl), tmp_path / "cut"), resume=True)
    assert again["status"] == "finished"
    assert (tmp_path / "cut" / name).read_bytes() == before
    same(tmp_path / "whole", tmp_path / "cut")


def test_an_adaptive_kl_coefficient_goes_on_after_a_resume(tmp_path):
    kl = "kl: {place: loss, coefficient: 0.5, target: 0.001, horizon: 20}"
    more = (
        *BASIS,
        algorithm(f"name: grpo, aggregation: token_mean, {kl}"),
        "stages.reinforce.iterations=3",
        "stages.reinforce.optimizer.learning_rate=0.005",
    )
    run(experiment(small(*more), tmp_path / "whole"))
    total, policy, nats = (
        curve(tmp_path / "whole", f"loss/{name}") for name in ("total", "policy", "kl")
    )
    # No divergence in the first iteration, far below the target: the coefficient falls by
    # 0.2 · trajectories / horizon = 0.2 · 16 / 20. Then it is far above, and rises by as much.
    assert (total[1] - policy[1]) / nats[1] == pytest.approx(0.5 * 0.84, rel=1e-3)
    assert nats[1] > 0.0012
    assert (total[2] - policy[2]) / nats[2] == pytest.approx(0.5 * 0.84 * 1.16, rel=1e-3)
    assert interrupted(tmp_path / "cut", "reinforce", 2, *more) == "interrupted"
    run(experiment(small(*more), tmp_path / "cut"), resume=True)
    same(tmp_path / "whole", tmp_path / "cut")


def test_entropy_is_taken_off_the_loss(tmp_path):
    ran(tmp_path / "run", algorithm("name: grpo, aggregation: token_mean, entropy: 0.05"))
    total, policy, entropy = (
        curve(tmp_path / "run", f"loss/{name}") for name in ("total", "policy", "entropy")
    )
    for each, own, nats in zip(total, policy, entropy, strict=True):
        assert 0.0 < nats < math.log(len(Tiny().tokenizer()))
        assert each == pytest.approx(own - 0.05 * nats, abs=1e-5)


def test_minibatches_and_epochs_are_optimizer_steps_and_their_ratios_are_clipped(tmp_path):
    fields = "name: ppo, whiten: true, value_clip: 0.2, clip_low: 0.01, clip_high: 0.01"
    summary = ran(
        tmp_path / "run",
        algorithm(fields),
        "stages.reinforce.trainer.minibatches=2",
        "stages.reinforce.trainer.epochs=2",
        "stages.reinforce.optimizer.learning_rate=0.005",
    )
    assert [(s["steps"], s["iterations"]) for s in summary["stages"]] == [(2, 0), (8, 2)]
    assert all(0.0 < share < 1.0 for share in curve(tmp_path / "run", "loss/clip_fraction"))
    assert all(moved > 0.0 for moved in curve(tmp_path / "run", "loss/update_kl"))
    assert all(value > 0.0 for value in curve(tmp_path / "run", "loss/value"))


def test_the_value_may_not_move_beyond_its_clip_in_one_iteration(tmp_path):
    common = ("stages.reinforce.iterations=1", "stages.reinforce.trainer.epochs=3")
    rate = "stages.reinforce.optimizer.value_learning_rate=0.0005"
    losses = {}
    for clip in ("1e-9", "null"):
        ran(tmp_path / clip, algorithm(f"name: ppo, value_clip: {clip}"), rate, *common)
        [losses[clip]] = curve(tmp_path / clip, "loss/value")
    # A bound so tight always binds, and the loss of all three steps is that of the old values.
    assert losses["1e-9"] > 0.0
    assert losses["null"] < 0.9 * losses["1e-9"]


def test_schedules_change_the_horizon_and_the_temperature_by_iteration(tmp_path):
    ran(
        tmp_path / "run",
        "stages.imitate.steps=40",  # enough for turns that are closed
        "stages.reinforce.environment.max_turns={schedule: steps, values: [1, 2], every: 1}",
        "stages.reinforce.rollout.temperature={schedule: linear, from: 1.0, to: 0.05, over: 1}",
        "evaluation.tasks=6",
        "evaluation.every=1",
    )
    found = rows(tmp_path / "run", "trajectories")
    longest = {
        (split, iteration): max(
            row["turns"]
            for row in found
            if (row["stage"], row["split"], row["iteration"]) == ("reinforce", split, iteration)
        )
        for split, iteration in [("dev", 0), ("train", 0), ("train", 1), ("dev", 2), ("test", 2)]
    }
    assert longest == {
        ("dev", 0): 1,
        ("train", 0): 1,
        ("train", 1): 2,
        ("dev", 2): 2,  # an evaluation is played by the rules that hold then
        ("test", 2): 2,
    }
    turns = [row for row in rows(tmp_path / "run", "turns") if row["split"] == "train"]
    means = []
    for iteration in (0, 1):
        logp = [p for row in turns if row["iteration"] == iteration for p in row["logp_rollout"]]
        means.append(sum(logp) / len(logp))
    assert means[0] < -1.0  # a policy that has hardly learned is unsure at temperature 1
    assert means[1] > 0.6 * means[0]  # and at 0.05 much less so
    # The trainer's log-probabilities are those at the temperature of the samples.
    assert all(gap < 1e-3 for gap in curve(tmp_path / "run", "sync/logp_gap_max"))


def test_two_rewards_add_up_with_their_weights(tmp_path):
    two = "rewards=[{name: spread, weight: 2.0}, {name: format_tags, weight: -0.5, as: form}]"
    ran(tmp_path / "run", two)
    found = trained_rows(tmp_path / "run")
    assert len(found) == 2 * 16
    for row in found:
        parts = dict(row["parts"])
        assert set(parts) == {"spread", "form"}
        expected = 2.0 * parts["spread"] - 0.5 * parts["form"]
        assert row["total"] == pytest.approx(expected, abs=1e-12)
    assert len({row["total"] for row in found}) > 2


def test_what_cannot_be_computed_is_null_counted_and_dropped(tmp_path):
    ran(tmp_path / "run", "rewards=[{name: spread, patchy: true, missing: drop}]")
    found = trained_rows(tmp_path / "run")
    nulls = [row for row in found if row["total"] is None]
    assert 0 < len(nulls) < len(found)
    assert all(row["advantage_mean"] is None for row in nulls)
    assert all(row["advantage_mean"] is not None for row in found if row["total"] is not None)
    assert all(dict(row["parts"]) == {"spread": None} for row in nulls)
    assert sum(curve(tmp_path / "run", "reward/spread_null")) == len(nulls)


def test_a_reward_that_may_not_be_missing_stops_the_run(tmp_path):
    told = run(
        experiment(
            small(*BASIS, "rewards=[{name: spread, patchy: true, missing: stop}]"), tmp_path / "run"
        )
    )
    assert told["status"] == "stopped"
    assert (tmp_path / "run" / "summary.json").is_file()


def test_dynamic_sampling_replaces_groups_without_signal(tmp_path):
    ran(
        tmp_path / "run",
        algorithm("name: dapo"),
        "stages.reinforce.rollout.sampling={name: dynamic, limit: 8}",
        "rewards=[{name: spread, half: true}]",
    )
    found = trained_rows(tmp_path / "run")
    groups: dict[tuple, list[float]] = {}
    for row in found:
        groups.setdefault((row["iteration"], row["group_id"]), []).append(row["total"])
    assert [len(totals) for totals in groups.values()] == [4] * 8  # tasks and attempts as written
    refilled = {name for _, name in groups if name.split("-")[1] != "0"}
    assert refilled
    assert all(len(set(totals)) > 1 for totals in groups.values())
    assert curve(tmp_path / "run", "rollout/degenerate_groups_share") == [0.0, 0.0]


def test_bf16_computes_in_bf16_and_keeps_its_weights_in_fp32(tmp_path):
    ran(tmp_path / "run", "trainer.precision=bf16")
    assert {tensor.dtype for tensor in weights(tmp_path / "run").values()} == {torch.float32}
    gaps = curve(tmp_path / "run", "sync/logp_gap_max")
    assert all(1e-4 < gap < 0.5 for gap in gaps)  # the sampler is in fp32: the gap is logged
    assert all(math.isfinite(loss) for loss in curve(tmp_path / "run", "loss/total"))


def test_the_grpo_profile_trains_without_a_critic(tmp_path):
    recipe = load(RECIPE, [*SMALL, *BASIS], profile="grpo")
    assert (recipe.profile, recipe.stages[1].rollout.group_size) == ("grpo", 4)
    told = run(experiment(recipe, tmp_path / "run"))
    assert (told["status"], told["profile"]) == ("finished", "grpo")
    assert told["stages"][1]["algorithm"] == "grpo"
    assert not curve(tmp_path / "run", "loss/value")
