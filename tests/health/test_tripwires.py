from __future__ import annotations

import pytest

from agentrecipes.health.tripwires import dead_type, no_signal
from agentrecipes.recipe.schema import DeadType, NoSignal


def test_a_score_at_the_limit_lets_the_stage_begin():
    verdict = no_signal(NoSignal(below=0.05), 0.05, stage="reinforce")
    assert (verdict.action, verdict.message, verdict.evidence) == ("go", "", {"score": 0.05})


@pytest.mark.parametrize("action", ["warn", "stop"])
def test_a_score_below_the_limit_leads_to_what_the_recipe_says(action):
    verdict = no_signal(NoSignal(below=0.05, action=action), 0.01, stage="reinforce")
    assert (verdict.action, verdict.evidence) == (action, {"score": 0.01})
    assert "before stage 'reinforce' is 0.010, below 0.05" in verdict.message


def test_a_score_that_could_not_be_computed_is_no_signal():
    verdict = no_signal(NoSignal(), None, stage="reinforce")
    assert verdict.action == "stop"
    assert "could not be computed" in verdict.message


def test_kinds_that_imitation_learned_need_nothing():
    verdict = dead_type(DeadType(below=0.9), {"chain-1": 0.9, "chain-2": 1.0}, extensions=0)
    assert verdict.action == "go"


@pytest.mark.parametrize(
    ("action", "extensions", "expected"),
    [("extend", 0, "extend"), ("extend", 3, "extend"), ("extend", 4, "warn"), ("stop", 9, "stop")],
)
def test_a_dead_kind_extends_imitation_a_few_times_and_then_warns(action, extensions, expected):
    rule = DeadType(below=0.9, action=action, times=4)
    verdict = dead_type(rule, {"chain-1": 1.0, "conjunction-2": 0.4}, extensions=extensions)
    assert verdict.action == expected
    assert verdict.evidence == {"conjunction-2": 0.4}
    assert "conjunction-2 0.40" in verdict.message
    assert "chain-1" not in verdict.message


def test_an_accuracy_that_is_not_a_number_is_dead():
    assert dead_type(DeadType(), {"chain-1": float("nan")}, extensions=0).action == "extend"
