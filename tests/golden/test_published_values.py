"""Every published value has a test: rewards through ``agentrecipes score``, all else by formula.

A row says what the value is and where it is asserted. The papers' arithmetic stands beside the
assertions; this table holds that none is lost.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SCORED = "rewards/test_golden_values.py"
ADVANTAGES, RATIOS = "numerics/test_advantages.py", "numerics/test_ratios.py"
SCHEDULES, WEIGHING = "test_schedules.py", "training/test_weighing.py"
WHERE = {
    "exact match: The Eiffel-Tower!, An apple": f"{SCORED}::exact_match_normalises_as_published",
    "search_r1_v03: .8, .2, .1; without an answer 0": f"{SCORED}::search_r1_v03",
    "search_r1_v03: retrieval .1, wrong, valid, a hit: .3": (
        f"{SCORED}::search_r1_v03_with_a_reward_for_retrieval"
    ),
    "search_r1_v03: no answer in a valid sequence: .2": (
        f"{SCORED}::search_r1_v03_without_an_answer_in_a_valid_sequence"
    ),
    "agent_r1_legacy: 1, -.3, -1, -.5": f"{SCORED}::agent_r1_legacy",
    "agentic_rag_r1, form: 2, 0, 2.2": f"{SCORED}::the_form_of_agentic_rag_r1",
    "agentic_rag_r1: 2.2 + 3 + 2 = 7.2": f"{SCORED}::the_whole_of_agentic_rag_r1_with_ragas",
    "agentic_rag_r1 without RAGAS": (
        f"{SCORED}::the_whole_of_agentic_rag_r1_with_a_judge_in_place_of_ragas"
    ),
    "arpo: F1 .5, both tools: .6": f"{SCORED}::arpo",
    "deep_dx: .975; refer 0; .32": f"{SCORED}::deep_dx",
    "m_grpo: 1, .1": f"{SCORED}::m_grpo_of_the_main_agent",
    "m_grpo_sub: .75": f"{SCORED}::m_grpo_of_the_helper",
    "SPEAR, bonus for 5 calls at T / 2: .25": f"{SCORED}::spear_s_bonus_for_five_calls",
    "Atom-Searcher, α .5, .25, 0": f"{SCORED}::atom_searcher_over_the_training",
    "ARPO, branching at ΔH -1, 0, 1, 3: .3, .5, .7, 1": (
        "sampling/test_branching.py::the_probability_of_a_branch_is_that_of_arpos_code"
    ),
    "DAPO, overlong: 0, -.5, -1": f"{SCORED}::dapo_s_punishment_of_length",
    "rStar2, penalty: .75, .5": f"{SCORED}::the_penalty_of_rstar2",
    "SSP, proposer: 0, .75, 1, .75, 0": (
        f"{SCORED}::ssp_pays_who_poses_questions_by_how_often_they_are_solved"
    ),
    "PPR, ReNorm of .6: .6, -.4": f"{SCORED}::renorm_of_ppr_agrees_with_the_outcome",
    "RLOO of 1, 0, 0, 0": f"{ADVANTAGES}::leaving_one_out_has_the_published_values",
    "GRPO of 1, 0, 0, 0: ε, population, without σ": (
        f"{ADVANTAGES}::group_advantages_have_the_published_values"
    ),
    "GRPO of 1, 1, 1, 1: 0": f"{ADVANTAGES}::equal_returns_and_one_alone_have_exactly_zero",
    "packed GAE: .25, .5, 1": f"{ADVANTAGES}::packed_gae_has_the_published_values",
    "packed GAE, from labels": (
        "algorithms/test_by_hand.py::gae_runs_over_action_tokens_as_published"
    ),
    "step GAE: .8, .5, .2": f"{ADVANTAGES}::step_gae_has_the_published_values",
    "KL, d ±.1: k1, k2, k3": f"{RATIOS}::kl_estimators_have_the_published_values",
    "dual clip: -3, -2": f"{RATIOS}::dual_clip_has_the_published_values",
    "Agentic-RAG-R1, ratios .90 to 1.15, 1.14": (
        f"{RATIOS}::agentic_rag_r1_keeps_the_ratio_within_its_published_ranges"
    ),
    "AgentGym-RL, rounds 5, 8, 10, and resumed from 100": (
        f"{SCHEDULES}::the_horizon_is_scalinginter_s_at_every_step"
    ),
    "SPEAR, replay weight 0, .5, 1, 1": (
        f"{SCHEDULES}::reward_weights_are_the_papers_at_the_start_the_middle_and_the_end"
    ),
    "FunReason: .5407, .65, 1.5": (
        f"{WEIGHING}::long_thoughts_beside_short_calls_have_funreason_s_losses"
    ),
}


@lru_cache
def known_in(file: str) -> frozenset[str]:
    """The names of a file's tests, without the word itself."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    names = (node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    return frozenset(name.removeprefix("test_") for name in names)


@pytest.mark.parametrize("value", WHERE)
def test_a_published_value_is_asserted_where_the_table_says(value):
    file, _, name = WHERE[value].partition("::")
    assert name in known_in(file)


def test_every_reward_that_is_shipped_as_a_preset_has_published_values():
    presets = {path.stem for path in (TESTS.parent / "src/agentrecipes/rewards").glob("*.yaml")}
    text = (TESTS / SCORED).read_text(encoding="utf-8")
    assert {name for name in presets if f'"{name}"' not in text} == {"rag_r1"}  # search_r1_em's
