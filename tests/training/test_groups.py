"""Groups that grow: attempts that go on where others stood, up to the group's size."""

from __future__ import annotations

import pytest
import torch
from small import ready, small

from agentrecipes.engines.scripted import ScriptedEngine
from agentrecipes.errors import RunStopped
from agentrecipes.health.metrics import rollout_metrics
from agentrecipes.sampling.branching import Branching
from agentrecipes.sampling.protocol import Branch
from agentrecipes.training.collecting import Collector
from agentrecipes.training.position import Position, Sampler

WORDS = ("stages.reinforce.algorithm.name=grpo", "rewards=[spread]", "rollout.tokens=512")
SEARCH = "<think> a </think> <search> b </search>"


def said(request):
    """Two searches, then an answer behind a thought of the attempt's own."""
    attempt, turn = request.key[-3], request.key[-2]
    if turn < 2:
        return SEARCH
    return f"<think> {'a' * (attempt % 4)} </think> <answer> b </answer>"


def collector(folder, sampling, *words: str):
    """A collector whose policy says `said`, and what it was asked."""
    run, fields, sampler = ready(small(*WORDS, *words), folder)
    rollout = fields.rollout.model_copy(update={"sampling": sampling, "tokens_per_turn": 64})
    engine = ScriptedEngine(run.policy.tokenizer, said)
    sampler = Sampler(engine, sampler.chat, 7, fields.name)
    fields = fields.model_copy(update={"rollout": rollout})
    return Collector(sampler, run.policy.module, torch.no_grad), fields, engine


def test_groups_grow_to_their_size_and_a_branch_begins_with_anothers_tokens(tmp_path):
    made, fields, engine = collector(tmp_path, Branching(initial=1, base=1.0))
    iteration = made.iteration(fields, Position())
    groups: dict[str, list] = {}
    for each in iteration.scored:
        groups.setdefault(each.trajectory.group, []).append(each.trajectory)
    assert [len(group) for group in groups.values()] == [4] * 4
    for group in groups.values():
        assert [each.attempt - group[0].attempt for each in group] == [0, 1, 2, 3]
        # Behind the first search and the second of attempt 0, then the second of attempt 1.
        assert [each.taken_turns for each in group] == [0, 1, 2, 2]
        for other, turns in zip(group[1:], (1, 2, 2), strict=True):
            for one, two in zip(group[0].turns[:turns], other.turns[:turns], strict=True):
                assert (one.prompt, one.action) == (two.prompt, two.action)
    assert len(engine.requests) == 4 * (3 + 2 + 1 + 1)
    assert len({request.key for request in engine.requests}) == len(engine.requests)
    figures = rollout_metrics(iteration.scored)
    assert figures["rollout/branched_share"] == 0.75
    searches = figures["rollout/taken_share"] * sum(
        t.policy_tokens for t in trajectories(iteration)
    )
    each = len(iteration.scored[0].trajectory.turns[0].action)
    assert searches == pytest.approx(4 * 5 * each)


def trajectories(iteration):
    return [each.trajectory for each in iteration.scored]


def test_what_attempts_share_is_computed_once(tmp_path):
    made, fields, _ = collector(tmp_path, Branching(initial=1, base=1.0))
    iteration = made.iteration(fields, Position())
    micros = [micro for step in iteration.steps for micro in step if not micro.empty]
    rows = sum(int(micro.batch.action_mask.sum()) for micro in micros)
    assert rows == sum(each.policy_tokens for each in trajectories(iteration))
    strip = sum(micro.strip.ids.numel() for micro in micros)
    longest = max(
        len(turn.prompt) + len(turn.action)
        for each in trajectories(iteration)
        for turn in each.turns
    )
    assert strip < 4 * longest * 1.5  # four groups, hardly more than one row each


def test_a_task_that_is_drawn_twice_has_no_attempt_twice(tmp_path):
    words = ("rollout.tasks=6", "environment.dataset.train=2")
    made, fields, engine = collector(tmp_path, Branching(initial=1), *words)
    iteration = made.iteration(fields, Position())
    assert len(iteration.scored) == 24
    tried = [(each.task.id, each.attempt) for each in trajectories(iteration)]
    assert len(set(tried)) == 24
    assert len({request.key for request in engine.requests}) == len(engine.requests)


class Greedy(Branching):
    """A sampling that adds more attempts than there is room for."""

    part_name = "greedy"

    def branch(self, group):
        return [Branch()] * (group.room + 1)


def test_a_sampling_that_wants_too_many_attempts_stops_the_run(tmp_path):
    made, fields, _ = collector(tmp_path, Greedy(initial=1))
    with pytest.raises(RunStopped, match="'greedy' wants 4 more attempts where 1 of 4 are there"):
        made.iteration(fields, Position())
