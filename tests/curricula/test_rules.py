"""A curriculum that asks for what no task has is refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrecipes.recipe.load import check

RECIPE = Path(__file__).parents[2] / "recipes" / "rag_r1.yaml"
WORLD = "environment.dataset.train=60"


def problems(curriculum):
    _, found = check(RECIPE, [WORLD, f"curriculum={curriculum}"])
    said = [problem.message.partition(" (in the override")[0] for problem in found]
    return [
        (problem.code, problem.path, f"{text}. {problem.suggestion}")
        for problem, text in zip(found, said, strict=True)
    ]


@pytest.mark.parametrize(
    "curriculum",
    [
        "{name: weighted, weights: {chain-1: 2, conjunction-2: 0}}",
        "{name: weighted, by: hops, weights: {'3': 2}}",
        "{name: stages, plan: [{shares: {chain-1: 1}}, {from: 9, shares: {chain-3: 1}}]}",
        "{name: easy_to_hard, over: 20}",
        "{name: easy_to_hard, by: question, occurrences: relation}",
        "{name: success_band, by: type, low: {schedule: linear, from: 0.1, to: 0.3, over: 10}}",
        "solvable",
        "hard_pool",
        "replay_failures",
    ],
)
def test_what_fits_the_tasks_is_accepted(curriculum):
    assert problems(curriculum) == []


@pytest.mark.parametrize(
    ("curriculum", "code", "path", "said"),
    [
        (
            "{name: weighted, weights: {chain_2: 2}}",
            "unknown_kind",
            "curriculum.weights",
            "no training task has type 'chain_2'. Did you mean 'chain-2'?",
        ),
        (
            "{name: weighted, by: hop, weights: {'2': 2}}",
            "missing_field",
            "curriculum.by",
            "no training task has a field 'hop'. Did you mean 'hops'?",
        ),
        (
            "{name: weighted, weights: {chain-2: 0}, others: 0}",
            "out_of_range",
            "curriculum.weights",
            "every weight is 0: there is nothing to pick. Give one kind a weight above 0.",
        ),
        (
            "{name: stages, plan: [{shares: {chain-1: 1}}, {from: 9, shares: {chain-9: 1}}]}",
            "unknown_kind",
            "curriculum.plan[1].shares",
            "no training task has type 'chain-9'.",
        ),
        (
            "{name: easy_to_hard, by: type}",
            "wrong_value",
            "curriculum.by",
            "which says not how hard it is. Write `order: [EASY, …, HARD]`",
        ),
        (
            "{name: easy_to_hard, occurrences: x, order: [a]}",
            "contradiction",
            "curriculum.order",
            "occurrences and order both say what is hard. Leave one of them out.",
        ),
        (
            "{name: success_band, by: kind}",
            "missing_field",
            "curriculum.by",
            "no training task has a field 'kind'.",
        ),
    ],
)
def test_what_no_task_has_is_refused(curriculum, code, path, said):
    [(found_code, found_path, text)] = problems(curriculum)
    assert (found_code, found_path) == (code, path)
    assert said in text
