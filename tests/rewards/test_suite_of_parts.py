"""Every reward that is shipped holds what every reward must, and can be listed."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.rewards.views import played

from agentrecipes.components import build, find, names
from agentrecipes.testing.suites import RewardSuite

HIT = {"name": "progress", "of": "gold"}  # one value for each turn
SAID = str(Path(__file__).parent / "judged.jsonl")
RECORDED = {"name": "recorded", "path": SAID}
NEEDED = {  # the fields that parts cannot do without
    "gate": {"when": "format_valid", "then": [HIT, "exact_match"], "else": -1},
    "product": {"of": [HIT, "exact_match"]},
    "minimum": {"of": [HIT, "format_valid"]},
    "maximum": {"of": [HIT, "format_valid"]},
    "clip": {"of": HIT, "high": 0.5},
    "mix": {"of": HIT, "rest": "exact_match"},
    "difficulty": {"of": {"name": "given", "field": "solved"}},
    "renorm": {"of": HIT, "outcome": "exact_match"},
    "judge": {"judge": RECORDED},
    "given": {"field": "type"},
    "tools_used": {"tools": ["search", "add"]},
    "tag_rules": {"once": ["answer"]},
    "ragas": {"judge": RECORDED, "metric": "faithfulness"},
    "ragas_faithfulness": {"judge": RECORDED},
    "ragas_context_relevance": {"judge": RECORDED},
    "ragas_answer_relevancy": {"judge": RECORDED, "embeddings": RECORDED},
    "rubric": {"judge": RECORDED, "criteria": ["is short"]},
}


SHIPPED = [
    name
    for name in names("reward")
    if find("reward", name).__module__.startswith("agentrecipes.")
    and (find_spec("ragas") or not name.startswith("ragas"))
    and (find_spec("math_verify") or name != "math_verify")  # see test_problems.py
]


@pytest.fixture(params=SHIPPED)
def shipped(request):
    return build("reward", {"name": request.param, **NEEDED.get(request.param, {})})


class TestEveryReward(RewardSuite):
    @pytest.fixture
    def reward(self, shipped):
        return shipped

    def views(self):
        rich = played(
            ("Rome is it, Rome is it", "Title: Rome", ["search", ("add", {"a": 1})]),
            ("broken", "Rome", ["search"]),
            answer="b",
            tokens=(20_000, 7),
            options={"A": "Paris", "B": "Rome"},
            supporting_titles=("Rome", "Latium"),
            solved=0.3,
            ground_truth=[{"search": {"query": ["q", ""]}}, {"name": "add", "arguments": {"a": 1}}],
        )
        return [*super().views(), replace(rich, rewards=(0.5, -0.25))]

    def test_it_says_whether_it_gives_a_number_or_one_for_each_turn(self, reward):
        given = {isinstance(reward.score(view), list) for view in self.views() if view.actions}
        assert (reward.gives == "turn") == (True in given)
