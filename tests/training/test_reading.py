"""Demonstrations by step: every one once a pass, under fresh names, whatever came before."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from small import small

from agentrecipes.demonstrations.protocol import Demonstration
from agentrecipes.demonstrations.scripted import Scripted
from agentrecipes.models.tiny import LONGEST, Tiny
from agentrecipes.models.words import word_tokenizer
from agentrecipes.numerics.streams import derive
from agentrecipes.recipe.schema import Trainer
from agentrecipes.records import Source
from agentrecipes.rollout.chat import Chat
from agentrecipes.training.reading import BUCKET, NameTokens, Reader
from agentrecipes.training.telling import demonstration_rows
from agentrecipes.training.weighing import Weighing

ROWS = 5  # an optimizer step
COUNT = BUCKET * ROWS  # demonstrations: a bucket of steps is a pass


@pytest.fixture(scope="module")
def environment():
    return small().stages[0].environment


@pytest.fixture(scope="module")
def chat():
    return Chat(Tiny().tokenizer())


@pytest.fixture(scope="module")
def spelling():
    """A chat whose tokenizer knows no name: each takes several tokens."""
    return Chat(word_tokenizer((), LONGEST))


def reader(environment, chat, **fields: Any) -> Reader:
    values = {
        "demonstrations": Scripted(count=COUNT),
        "seed": 7,
        "weighing": lambda step: Weighing(observation_weight=0.5),
        "trainer": Trainer(rows_per_step=ROWS, tokens_per_batch=400),
        "row_tokens": 256,
        **fields,
    }
    return Reader(environment=environment, chat=chat, **values)


def contents(rows) -> list[tuple]:
    return [(row.trajectory, row.ids.tolist(), row.weight.tolist()) for row in rows]


def test_a_step_does_not_depend_on_the_steps_before_it(environment, chat):
    one, other = reader(environment, chat), reader(environment, chat)
    steps = {step: contents(one.rows(step)) for step in range(2 * BUCKET + 3)}
    for step in (18, 3, 11):
        assert contents(other.rows(step)) == steps[step]


def test_another_seed_reads_in_another_order(environment, chat):
    one, other = reader(environment, chat), reader(environment, chat, seed=8)
    assert [one.numbers(step) for step in range(BUCKET)] != [
        other.numbers(step) for step in range(BUCKET)
    ]


def test_every_demonstration_is_used_once_a_pass(environment, chat):
    made = reader(environment, chat)
    passes = [
        [made.numbers(step) for step in range(start, start + BUCKET)]
        for start in range(0, 3 * BUCKET, BUCKET)
    ]
    for each in passes:
        assert sorted(n for step in each for n in step) == list(range(COUNT))
        assert {len(step) for step in each} == {ROWS}
    assert passes[0] != passes[1]


def test_passes_that_do_not_end_with_a_bucket_still_use_each_equally(environment, chat):
    made = reader(
        environment, chat, demonstrations=Scripted(count=12), trainer=Trainer(rows_per_step=3)
    )
    # 5 buckets of 24 rows are 10 passes over 12 demonstrations.
    used = Counter(n for step in range(5 * BUCKET) for n in made.numbers(step))
    assert used == dict.fromkeys(range(12), 10)


def test_rows_of_one_step_are_alike_in_length(environment, chat):
    made = reader(environment, chat)
    steps = [[made._lengths[n] for n in made.numbers(step)] for step in range(BUCKET)]
    ordered = sorted(steps)
    assert steps != ordered  # the steps themselves are not sorted
    for shorter, longer in pairwise(ordered):
        assert max(shorter) <= min(longer)


def test_permuting_ids_is_writing_again_under_the_new_names(environment, chat):
    made = reader(environment, chat)
    names = NameTokens.of(chat, environment.symbols)
    assert names is not None
    role = environment.protocol.observation_role
    changed = 0
    for seed, drawn in enumerate(made.drawn):
        told = made.demonstrations.restate(drawn, environment, seed)
        [row] = demonstration_rows(drawn, chat, number=0, role=role)
        [again] = demonstration_rows(told, chat, number=0, role=role)
        assert names.renamed(row.ids, seed).tolist() == again.ids.tolist()
        assert row.sources.tolist() == again.sources.tolist()
        changed += row.ids.tolist() != again.ids.tolist()
    assert changed == COUNT


def test_a_demonstration_has_other_names_in_every_use(environment, chat):
    made = reader(environment, chat)
    first, second = (
        {
            made.numbers(step)[place]: row
            for step in steps
            for place, row in enumerate(made.rows(step))
        }
        for steps in (range(BUCKET), range(BUCKET, 2 * BUCKET))
    )
    assert all(first[n].ids.tolist() != second[n].ids.tolist() for n in range(COUNT))
    assert all(first[n].sources.tolist() == second[n].sources.tolist() for n in range(COUNT))


class Leading:
    """Demonstrations that begin with a name: without a blank before, it takes several tokens."""

    def __init__(self, name: str) -> None:
        self._scripted, self._name = Scripted(count=COUNT), name

    def draw(self, environment, seed) -> list[Demonstration]:
        drawn = self._scripted.draw(environment, seed)
        return [
            replace(
                one, turns=((f"{self._name} {one.turns[0][0]}", one.turns[0][1]), *one.turns[1:])
            )
            for one in drawn
        ]

    def restate(self, demonstration, environment, seed) -> Demonstration:
        return self._scripted.restate(demonstration, environment, seed)


@pytest.mark.parametrize("case", ["one token each", "several tokens each", "both"])
def test_a_row_is_its_demonstration_written_again_under_new_names(environment, request, case):
    """Where every name is one token, ids are permuted; elsewhere texts are written again."""
    chat = request.getfixturevalue("spelling" if case == "several tokens each" else "chat")
    fields = {"row_tokens": 4096}
    if case == "both":
        fields["demonstrations"] = Leading(min(environment.symbols))
    made = reader(environment, chat, **fields)
    assert (made._names is not None) == (case == "one token each")
    role = environment.protocol.observation_role
    for step in (0, BUCKET + 1):
        for place, (number, row) in enumerate(
            zip(made.numbers(step), made.rows(step), strict=True)
        ):
            seed = derive(made.seed, "restate", step, place)
            told = made.demonstrations.restate(made.drawn[number], environment, seed)
            [again] = demonstration_rows(told, chat, number=place, role=role)
            assert row.ids.tolist() == again.ids.tolist()
            assert row.trajectory == place


def test_observations_and_prompts_weigh_what_the_recipe_says(environment, chat):
    made = reader(environment, chat, weighing=lambda step: Weighing(0.25 * (step + 1)))
    assert {weight for row in made.rows(1) for weight in row.weight.tolist()} == {0.5, 1.0}
    for row in made.rows(0):
        weights = {
            source: set(row.weight[row.sources == source].tolist())
            for source in (Source.PROMPT, Source.POLICY, Source.OBSERVATION)
            if (row.sources == source).any()
        }
        assert weights.pop(Source.POLICY) == {1.0}
        assert all(found == {0.25} for found in weights.values())


def test_a_row_that_is_too_long_is_cut_at_its_end(environment, chat):
    whole, cut = (reader(environment, chat, row_tokens=n) for n in (256, 40))
    pairs = list(zip(whole.rows(0), cut.rows(0), strict=True))
    assert any(len(long) > 40 for long, _ in pairs)
    for long, short in pairs:
        assert len(short) == min(len(long), 40)
        assert short.ids.tolist() == long.ids[:40].tolist()
        assert short.weight.tolist() == long.weight[:40].tolist()


def test_micro_batches_hold_the_steps_rows_and_fillers_to_a_fixed_number(environment, chat):
    made = reader(environment, chat, trainer=Trainer(rows_per_step=ROWS, tokens_per_batch=100))
    for step in range(3):
        micros = made.micro_batches(step, 6)
        assert len(micros) == 6
        used = [micro for micro in micros if not micro.empty]
        assert 1 < len(used) <= 6
        rows = made.rows(step)
        total = sum(float(row.weight[1:].sum()) for row in rows)
        for micro in used:
            assert micro.batch.total_weight == pytest.approx(total, rel=1e-6)
        held = sum(float(micro.batch.token_weight.sum()) for micro in used)
        assert held == pytest.approx(total, rel=1e-6)
        assert {micro.policy_version for micro in micros} == {step}
