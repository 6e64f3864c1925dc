"""plan, from the outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.analysis.test_plan import RECIPE


@pytest.fixture
def planned(command):
    Path("planned.yaml").write_text(RECIPE)
    return Path("planned.yaml")


def test_plan_with_json_has_the_promised_keys(command, planned):
    told = json.loads(command("plan", planned, "--json").out)
    promised = {"memory", "tokens_per_iteration", "seconds_per_iteration", "fits", "suggestions"}
    assert promised <= set(told)
    assert set(told["memory"]) == {"total_bytes", "terms"}
    assert all(set(term) == {"name", "bytes"} for term in told["memory"]["terms"])
    assert told["tokens_per_iteration"] == 4 * 8 * 100
    assert told["seconds_per_iteration"] > 0
    assert told["fits"] is True


def test_plan_says_each_term_and_what_the_figures_rest_on(command, planned):
    done = command("plan", planned)
    assert done.code == 0
    for text in ("weights", "optimizer", "activations", "fits: ", "measured: ", "3200"):
        assert text in done.out


def test_what_does_not_fit_names_the_largest_term_and_a_change(command, planned):
    done = command("plan", planned, "--memory", "0.1")
    assert done.code == 0  # the question was answered
    for text in ("does not fit: 0.10 GiB", "largest: libraries", "instead: no one change"):
        assert text in done.out


def test_a_model_that_is_not_at_hand_is_an_error_in_one_line(command, planned):
    done = command("plan", planned, "model={name: hf, path: org/elsewhere}")
    assert done.code == 2
    assert "config.json of 'org/elsewhere' is not at hand" in done.err
    assert "AGENTRECIPES_MODELS" in done.err


def test_check_warns_and_is_content(command, planned):
    done = command("check", planned, "model.width=65536", "model.heads=2048", "--json")
    told = json.loads(done.out)
    assert (done.code, told["ok"]) == (0, True)
    assert [(each["code"], each["severity"]) for each in told["problems"]] == [
        ("memory", "warning")
    ]
