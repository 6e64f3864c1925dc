"""Every attempt from the prompt on."""

from __future__ import annotations

from agentrecipes.components import build
from agentrecipes.records import Task
from agentrecipes.sampling.protocol import Plan


def test_each_task_gets_its_whole_group_at_once_and_nothing_more():
    sampling = build("sampling", "independent")
    tasks = [Task("a", "train", "?"), Task("b", "train", "?")]
    assert sampling.plan(tasks, 8) == [Plan(tasks[0], 8, 0, 0), Plan(tasks[1], 8, 0, 0)]
    assert sampling.plan([], 8) == []
    assert [sampling.refill([], rounds) for rounds in range(3)] == [[], [], []]
