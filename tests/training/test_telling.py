"""A demonstration whose context was edited has the rows that a rollout of it would have."""

from __future__ import annotations

import asyncio
from random import Random

import numpy as np
import pytest

from agentrecipes.components import build
from agentrecipes.demonstrations.playing import written
from agentrecipes.demonstrations.scripted import Scripted
from agentrecipes.engines.scripted import ScriptedEngine
from agentrecipes.environments.script import Faults, Script
from agentrecipes.models.tiny import Tiny
from agentrecipes.recipe.schema import Trainer
from agentrecipes.records import Source
from agentrecipes.rollout.chat import Chat
from agentrecipes.rollout.collect import Job, Setting, collect
from agentrecipes.training.batch import read_batch
from agentrecipes.training.reading import Reader
from agentrecipes.training.rows import rows
from agentrecipes.training.telling import demonstration_rows
from agentrecipes.training.weighing import Weighing

TAGS = ("reasoning", "observation", "search", "answer", "backtrack", "summary")
WORDS = tuple(f"<{slash}{tag}>" for tag in TAGS for slash in ("", "/"))
EDITING = {"lazy_query": 0.6, "backtrack": 0.8, "summary": 0.7}
WORLD = {"name": "world", "train": 40, "dev": 20, "test": 5, "chains": [2], "conjunctions": []}
STACK, LAST = {"policy": "stack"}, {"policy": "stack", "summary": "last"}


@pytest.fixture(scope="module")
def chat():
    return Chat(Tiny(words=WORDS).tokenizer())


def environment(context):
    fields = {"dataset": WORLD, "protocol": "stack", "context": context, "max_turns": 7}
    return build("environment", {"name": "search", **fields})


def demonstration(world, task, seed):
    """A dev task, which is posed as it is, by a script that edits its context."""
    script = Script(task, 1, faults=Faults(**EDITING), random=Random(seed))
    return asyncio.run(written(world, world.open(task, seed), script))


def collected(world, told, chat):
    """The rows of a trajectory that says what a demonstration says."""
    engine = ScriptedEngine(chat.tokenizer, lambda request: told.turns[request.key[-2]][0])
    setting = Setting(world, engine, chat, tokens=2048, tokens_per_turn=512)
    [played] = collect([Job(told.task, "g", key=(0,))], setting)
    return rows(played.turns)


@pytest.mark.parametrize("context", [STACK, LAST, {"policy": "window", "turns": 1}, {}])
def test_its_rows_are_those_of_the_rollout(chat, context):
    world, forked = environment(context), 0
    for seed, task in enumerate(world.tasks("dev")):
        told = demonstration(world, task, seed)
        mine = demonstration_rows(told, chat, number=4, role="inline")
        theirs = collected(world, told, chat)
        forked += len(theirs) > 1
        assert len(mine) == len(theirs)
        for place, (own, other) in enumerate(zip(mine, theirs, strict=True)):
            closed = place == len(mine) - 1  # a demonstration closes its last message
            assert own.ids[: len(own) - closed].tolist() == other.ids.tolist()
            assert own.sources[: len(other)].tolist() == other.sources.tolist()
            assert own.turn_index[: len(other)].tolist() == other.turn_index.tolist()
            assert own.trajectory == 4
    assert (forked >= 10) == bool(context)


def test_what_is_shown_again_weighs_nothing_and_every_action_weighs_once(chat):
    world = environment(STACK)
    for seed, task in enumerate(world.tasks("dev")[:8]):
        told = demonstration(world, task, seed)
        found = demonstration_rows(told, chat, number=0, role="inline")
        weighed = [Weighing(0.5).weighted(row, np.zeros(len(row), dtype=bool)) for row in found]
        for row in weighed[1:]:
            again = row.sources == Source.PROMPT
            assert again.any()
            assert set(row.weight[again].tolist()) == {0.0}
        actions = sum(row.weight[row.action_mask].sum() for row in weighed)
        written_ids = sum(len(chat.encode(action)) for action, _ in told.turns)
        assert actions == written_ids + 1  # the token that ends the last message


def test_rows_of_one_demonstration_are_one_sequence_of_its_step(chat):
    made = Reader(
        demonstrations=Scripted(count=16, **EDITING),
        environment=environment(STACK),
        chat=chat,
        seed=3,
        weighing=lambda _: Weighing(),
        trainer=Trainer(rows_per_step=4, tokens_per_batch=256),
        row_tokens=512,
    )
    found = [row for step in range(4) for row in made.rows(step)]
    assert len(found) > 16
    batch = read_batch(made.rows(0))
    assert batch.sequences == 4.0
    assert sorted(set(batch.trajectory.tolist())) == [0, 1, 2, 3]
    micro = made.micro_batches(0, 6)
    assert len(micro) == 6
    kept = sum(float(one.batch.token_weight.sum()) for one in micro if not one.empty)
    assert kept == float(batch.token_weight.sum())


def test_a_row_that_is_cut_before_its_action_is_left_out(chat):
    made = Reader(
        demonstrations=Scripted(count=8, lazy_query=0.0, summary=1.0),
        environment=environment(STACK),
        chat=chat,
        seed=3,
        weighing=lambda _: Weighing(),
        trainer=Trainer(rows_per_step=4, tokens_per_batch=256),
        row_tokens=14,
    )
    for row in made.rows(0):
        assert len(row) <= 14
        assert row.action_mask.any()
