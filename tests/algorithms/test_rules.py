"""What an algorithm says about the stage it stands in, and how its KL coefficient moves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from agentrecipes.algorithms.fields import Kl
from agentrecipes.components import build, names
from agentrecipes.recipe.load import load
from algorithms.test_suite import with_fields
from tolerances import FLOAT64

CHECKS = [
    ({"name": "ppo"}, []),
    ({"name": "ppo", "max_tokens": 9}, [("no_effect", "max_tokens")]),
    ({"name": "grpo", "max_tokens": 9, "aggregation": "sequence_sum_norm"}, []),
    ({"name": "dr_grpo", "epsilon": 1e-4}, [("no_effect", "epsilon")]),
    ({"name": "ppo", "kl": {"coefficient": 0.001}}, [("no_effect", "kl.coefficient")]),
    ({"name": "ppo", "kl": {"place": "none", "estimator": "k1"}}, [("no_effect", "kl.estimator")]),
    ({"name": "ppo", "kl": {"place": "reward", "horizon": 9}}, [("no_effect", "kl.horizon")]),
    ({"name": "ppo", "kl": {"place": "reward", "horizon": 9, "target": 0.1}}, []),
    (
        {"name": "grpo", "kl": {"place": "loss", "estimator": "k1"}},
        [("no_gradient", "kl.estimator")],
    ),
    ({"name": "ppo", "value_coefficient": 0, "value_clip": 1}, [("no_effect", "value_clip")]),
]


def problems(part, group_size=8):
    stage = SimpleNamespace(rollout=SimpleNamespace(group_size=group_size))
    return list(part.rules(stage))


@pytest.mark.parametrize(("spec", "expected"), CHECKS, ids=str)
def test_a_field_without_effect_is_a_problem(spec, expected):
    found = [(problem.code, problem.path) for problem in problems(build("algorithm", spec))]
    assert found == expected


@pytest.mark.parametrize("spec", [spec for spec, _ in CHECKS], ids=str)
def test_a_dumped_algorithm_has_the_same_problems(spec):
    part = build("algorithm", spec)
    assert problems(build("algorithm", part.dump())) == problems(part)


@pytest.mark.parametrize("name", names("algorithm"))
def test_only_what_compares_attempts_refuses_a_group_of_one(name):
    part = with_fields(name, {})
    codes = [problem.code for problem in problems(part, group_size=1)]
    assert codes == (["group_size"] if part.needs.groups else [])
    assert problems(part) == []


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"name": "ppo", "dual_clip": 1.0}, "dual_clip"),
        ({"name": "ppo", "clip_low": 1.5}, "clip_low"),
        ({"name": "grpo", "gamma": 1.0}, "gamma"),
        ({"name": "reinforce", "clip_low": 0.2}, "clip_low"),
        ({"name": "sapo", "tau_positive": 0}, "tau_positive"),
        ({"name": "grpo", "kl": {"place": "los"}}, "place"),
        ({"name": "grpo", "importance": {"level": "turn"}}, "level"),
    ],
    ids=lambda x: str(x)[:40],
)
def test_a_wrong_field_is_refused(spec, field):
    with pytest.raises(ValidationError, match=field):
        build("algorithm", spec)


def of_dapo(more=()):
    """The last stage of the default recipe with dapo, and where its values came from."""
    path = Path(__file__).parents[2] / "recipes" / "rag_r1.yaml"
    recipe = load(path, ["stages.reinforce.algorithm=dapo", *more])
    return recipe.stages[-1], recipe.origin


def test_dapo_brings_dynamic_sampling_and_the_overlong_reward():
    stage, origin = of_dapo()
    assert stage.rollout.sampling.part_name == "dynamic"
    assert [entry.label for entry in stage.rewards] == ["exact_match", "length"]
    assert stage.rewards[1].part.dump() == build("reward", "length").dump()
    assert origin["stages.reinforce.rollout.sampling.name"] == "brought by dapo"
    assert origin["stages.reinforce.rewards[1].name"] == "brought by dapo"


def test_the_recipes_own_values_beat_what_dapo_brings():
    own = "stages.reinforce.rewards=[exact_match, {name: length, max: 200, weight: 0.5}]"
    stage, origin = of_dapo(["stages.reinforce.rollout.sampling=independent", own])
    assert stage.rollout.sampling.part_name == "independent"
    assert [(entry.label, entry.weight) for entry in stage.rewards] == [
        ("exact_match", 1.0),
        ("length", 0.5),
    ]
    assert stage.rewards[1].part.max == 200
    assert "brought by dapo" not in origin.values()


def test_needs_follow_the_terms():
    plain, full = (
        with_fields("grpo", fields).needs
        for fields in ({}, {"kl": {"place": "reward"}, "entropy": 0.1})
    )
    assert (plain.reference, plain.entropy, plain.groups) == (False, False, True)
    assert (full.reference, full.entropy, full.groups) == (True, True, True)
    assert with_fields("ppo", {}).needs.value
    assert with_fields("sft", {}).needs.demonstrations
    assert with_fields("gigpo", {}).needs.states


def test_a_fixed_coefficient_is_the_field_whatever_the_state_says():
    assert Kl(place="loss", coefficient=0.2).in_force({"kl_coefficient": 9.0}) == 0.2
    assert Kl(place="loss").in_force({}) == 0.001
    assert Kl(coefficient=0.2).in_force({}) == 0.0
    assert Kl(place="loss", coefficient=0.2).observe({"x": 1}, {"loss/kl": 9.0}) == {"x": 1}


def test_an_adaptive_coefficient_starts_at_the_field_and_moves():
    # KL .4 over a target of .1 is an error of 3, .2 at most: .5 · (1 + .2 · 50/100) = .55.
    kl = Kl(place="reward", coefficient=0.5, target=0.1, horizon=100)
    assert kl.in_force({}) == 0.5
    state = kl.observe({}, {"loss/kl": 0.4, "rollout/trajectories": 50})
    assert kl.in_force(state) == pytest.approx(0.55, rel=FLOAT64["rtol"])


def test_the_default_estimator_follows_the_place():
    assert (Kl(place="reward").kind, Kl(place="loss").kind) == ("k1", "k3")
    assert Kl(place="reward", estimator="k2").kind == "k2"


def test_reading_every_algorithms_fields_never_loads_torch():
    code = """
import json, sys
from agentrecipes.components import build, find, names
for name in names("algorithm"):
    part = build("algorithm", name)
    part.dump(), part.needs, find("algorithm", name).model_json_schema()
print(json.dumps(sorted({"torch._C", "transformers"} & set(sys.modules))))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
