"""Demonstrations by a script that errs on purpose."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

import pytest

from agentrecipes.components import build
from agentrecipes.datasets.knowledge import NAMES, vocabulary
from agentrecipes.demonstrations.scripted import MIX, Scripted
from agentrecipes.errors import RecipeError

NO_FAULTS = {
    "stop_chain": 0.0,
    "stop_conjunction": 0.0,
    "lazy_query": 0.0,
    "wrong_passage": 0.0,
    "wrong_relation": 0.0,
    "one_query": 0.0,
}


def environment(queries=3, **fields: object):
    parts = {
        "dataset": "world",
        "retriever": {"name": "bm25", "top_k": 2},
        "protocol": {"name": "search_tags", "queries_per_turn": queries},
    }
    return build("environment", {"name": "search", **parts, **fields})


@lru_cache
def drawn(queries=3, seed=0):
    """The default demonstrations, drawn once."""
    return tuple(Scripted().draw(environment(queries), seed))


def share(demonstrations):
    return sum(one.correct for one in demonstrations) / len(demonstrations)


@pytest.mark.parametrize(("queries", "low", "high"), [(3, 0.46, 0.54), (1, 0.39, 0.47)])
def test_about_half_of_them_end_correct(queries, low, high):
    # One standard deviation of a share of 3,000 is .009.
    assert low < share(drawn(queries)) < high


def test_every_type_is_shown_right_often_enough_to_be_rewarded():
    found = drawn()
    for kind in MIX:
        assert 0.15 < share([one for one in found if one.task.type == kind]) < 0.95


def test_types_come_in_the_shares_of_the_mix():
    counts = Counter(one.task.type for one in drawn())
    # Standard deviation of a count: sqrt(3000 p (1 - p)), at most 24.
    assert {kind: abs(counts[kind] - 3000 * part) < 100 for kind, part in MIX.items()} == (
        dict.fromkeys(MIX, True)
    )


def test_the_same_seed_draws_the_same_and_another_seed_others():
    script = Scripted(count=40)
    assert script.draw(environment(), 5) == script.draw(environment(), 5)
    assert script.draw(environment(), 5) != script.draw(environment(), 6)


@pytest.mark.parametrize("queries", [1, 3])
def test_without_faults_all_are_correct(queries):
    assert share(Scripted(count=200, **NO_FAULTS).draw(environment(queries), 1)) == 1.0


@pytest.mark.parametrize("fault", sorted(NO_FAULTS))
def test_each_fault_is_seen_in_what_is_written(fault):
    mix = {"chain-3": 0.5, "conjunction-3": 0.5}
    clean = Scripted(count=100, mix=mix, **NO_FAULTS).draw(environment(), 2)
    faulty = Scripted(count=100, mix=mix, **{**NO_FAULTS, fault: 1.0}).draw(environment(), 2)
    kind = "chain-3" if fault == "stop_chain" else "conjunction-3"
    before = [one for one in clean if one.task.type == kind]
    after = [one for one in faulty if one.task.type == kind]
    text = " ".join(action for one in after for action, _ in one.turns)
    turns = {len(one.turns) for one in after}
    if fault == "stop_chain":
        assert turns == {2}
    if fault == "lazy_query":
        assert "'s" not in text
    if fault == "one_query":
        assert turns == {4}
        assert share(after) == 1.0
    if fault == "stop_conjunction":
        assert turns == {2}  # three queries fit the first turn, so nothing was left to stop at
    if fault in ("wrong_passage", "wrong_relation"):
        assert share(after) < 0.1
    assert {len(one.turns) for one in before} == ({4} if kind == "chain-3" else {2})


def test_a_conjunction_stopped_early_answers_what_it_has():
    script = Scripted(
        count=30, mix={"conjunction-3": 1.0}, **{**NO_FAULTS, "stop_conjunction": 1.0}
    )
    for one in script.draw(environment(queries=1), 0):
        assert len(one.turns) == 2
        assert not one.correct
        value = one.task.gold_answers[0].split()[-1]  # the first part's value stands last
        assert one.turns[-1][0].endswith(f"<answer> {value} </answer>")


def test_they_are_really_searched_and_the_gold_answer_is_never_told():
    for one in drawn()[:300]:
        assert [message.content for message in one.messages] == [one.task.question]
        assert all(observation for _, observation in one.turns[:-1])
        said = one.turns[-1][0].split("<answer> ")[1].removesuffix(" </answer>")
        assert one.correct == (said in one.task.gold_answers)
        shown = " ".join(observation for _, observation in one.turns)
        assert all(name in shown or name in one.task.question for name in said.split()[::2])


@pytest.mark.parametrize("queries", [1, 3])
def test_every_word_is_in_the_vocabulary(queries):
    known = set(vocabulary())
    for one in drawn(queries)[:300]:
        for text in (one.messages[0].content, *(text for turn in one.turns for text in turn)):
            assert set(re.findall(r"[ \n]?\S+|\s", text)) <= known


def test_every_action_is_valid_and_has_a_weight():
    protocol = environment().protocol
    for one in drawn()[:300]:
        assert len(one.weights) == len(one.turns)
        assert all(protocol.parse(action).valid for action, _ in one.turns)


def test_training_names_differ_from_one_demonstration_to_the_next():
    script = Scripted(count=300, mix={"chain-1": 1.0})
    seen = Counter(one.task.question.split()[4] for one in script.draw(environment(), 0))
    assert len(seen) > 150  # a half of the world has 167 entities; renaming draws from 392 names


def test_restating_renames_everything_alike():
    world, script = environment(), Scripted()
    for number, one in enumerate(drawn()[:100]):
        other = script.restate(one, world, number)
        texts = [(one.task.question, other.task.question)]
        texts += [
            (a, b)
            for old, new in zip(one.turns, other.turns, strict=True)
            for a, b in zip(old, new, strict=True)
        ]
        pairs = {pair for a, b in texts for pair in zip(a.split(), b.split(), strict=True)}
        assert len({old for old, _ in pairs}) == len({new for _, new in pairs}) == len(pairs)
        assert all((old in NAMES) == (new in NAMES) for old, new in pairs)
        assert all(old == new for old, new in pairs if old not in NAMES)
        assert any(old != new for old, new in pairs)
        assert (other.correct, other.weights) == (one.correct, one.weights)
        said = other.turns[-1][0].split("<answer> ")[1].removesuffix(" </answer>")
        assert other.correct == (said in other.task.gold_answers)


def test_restating_depends_on_the_seed_alone():
    [one, *_], world, script = drawn(), environment(), Scripted()
    assert script.restate(one, world, 1) == script.restate(one, world, 1)
    assert script.restate(one, world, 1) != script.restate(one, world, 2)


def test_without_interchangeable_names_nothing_is_restated():
    spoken = build("environment", {"name": "search", "dataset": "sample"})
    [one, *_] = drawn()
    assert Scripted().restate(one, spoken, 1) is one


def test_a_task_without_a_plan_is_played_by_the_oracle():
    spoken = build("environment", {"name": "search", "dataset": "sample"})
    made = Scripted(count=5).draw(spoken, 0)
    assert all(one.correct for one in made)
    for one in made:
        action, observation = one.turns[0]
        assert "<search>" in action
        assert "<information>" in observation
        assert one.task.gold_answers[0] in one.turns[-1][0]


def test_a_mix_that_names_no_type_of_the_dataset_is_refused():
    with pytest.raises(RecipeError, match=r"demonstrations\.mix"):
        Scripted(mix={"chain-9": 1.0}).draw(environment(), 0)


def test_a_dataset_with_fewer_types_gets_the_rest_of_the_mix():
    chains = environment(dataset={"name": "world", "conjunctions": []})
    counts = Counter(one.task.type for one in Scripted(count=600).draw(chains, 0))
    # .08 : .16 : .24 of 600 is 100 : 200 : 300, standard deviations about 11.
    assert abs(counts["chain-1"] - 100) < 50
    assert abs(counts["chain-3"] - 300) < 50
