"""The generated world: its facts, its questions, and its language."""

from __future__ import annotations

from collections import Counter

import pytest
from pydantic import ValidationError

from agentrecipes.components import build
from agentrecipes.datasets.knowledge import NAMES, RELATIONS, vocabulary, world
from agentrecipes.datasets.world import World, interleave
from agentrecipes.numerics.answer_text import normalise
from agentrecipes.testing.suites import DatasetSuite

TYPES = ["chain-1", "chain-2", "chain-3", "conjunction-2", "conjunction-3"]


class TestWorld(DatasetSuite):
    @pytest.fixture
    def dataset(self):
        return World(train=300, dev=100, test=100)


class TestOneType(DatasetSuite):
    @pytest.fixture
    def dataset(self):
        return World(chains=(4,), conjunctions=(), train=20, dev=20, test=20, world_seed=3)


def facts(split):
    """(subject, relation) → value, read from the passages."""
    found = {}
    for passage in World().corpus(split):
        subject, _, relation, _, value, _ = passage.text.split()
        assert passage.title == subject
        found[subject, relation] = value
    return found


def entities(split):
    """The names that a split's questions speak of or are answered by."""
    tasks = World().tasks(split)
    words = {word for task in tasks for word in f"{task.question} {task.gold_answers}".split()}
    return {word.strip("(),'") for word in words} & set(NAMES)


def test_a_world_has_the_entities_and_facts_it_should():
    # Of each half: 60 persons x 4 + 30 cities x 2 + 25 companies x 3 + 40 works x 3 +
    # 12 countries x 2 = 519 facts about 167 entities.
    one = world(0)
    assert len(one.passages) == len(facts("train")) == 2 * 519
    assert Counter(one.types.values()) == {
        "person": 120,
        "city": 60,
        "company": 50,
        "work": 80,
        "country": 24,
    }
    assert sum(len(relations) for relations in RELATIONS.values()) == 14


def test_values_have_the_right_type_are_of_the_same_half_and_never_the_subject():
    one = world(0)
    half = {name: h for h, kinds in one.halves.items() for ns in kinds.values() for name in ns}
    for (subject, relation), fact in one.facts.items():
        assert one.types[fact.value] == RELATIONS[one.types[subject]][relation]
        assert half[fact.value] == half[subject]
        assert fact.value != subject


def test_names_are_one_word_each_and_survive_normalisation():
    assert len(set(NAMES)) == 392
    assert all(normalise(name) == name for name in NAMES)
    assert not set(NAMES) & {relation for group in RELATIONS.values() for relation in group}


def test_dev_speaks_of_no_entity_of_train_and_test_is_another_world():
    assert not entities("train") & entities("dev")
    assert World().corpus("train") is World().corpus("dev")
    shared = set(facts("train").items()) & set(facts("test").items())
    assert len(shared) < 40  # a few facts agree by chance, as the names are the same 392
    other = World(world_seed=1)
    assert other.corpus("train") != World().corpus("test")


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_gold_answers_follow_from_the_passages(split):
    known = facts(split)
    for task in World().tasks(split)[:500]:
        values = []
        for subject, relation in task.data["plan"]:
            values.append(known[values[-1] if subject is None else subject, relation])
        assert len(task.data["supporting_ids"]) == task.data["hops"] == len(values)
        if task.type.startswith("chain"):
            assert task.gold_answers == (values[-1],)
        else:
            form = "{1} and {0}" if len(values) == 2 else "{2} with {1} plus {0}"
            assert task.gold_answers[0] == form.format(*values)
            assert len(set(task.gold_answers)) == {2: 2, 3: 6}[len(values)]


def test_questions_have_their_written_form():
    for task in World().tasks("dev")[:100]:
        plan = task.data["plan"]
        if task.type.startswith("chain"):
            path = "".join(f" 's {relation}" for _, relation in plan)
            assert task.question == f"question : what is {plan[0][0]}{path} ?"
        else:
            first, *more = [f"{subject} 's {relation}" for subject, relation in plan]
            rest = "".join(f"\n{n}. {part}" for n, part in enumerate(more, start=2))
            assert task.question == f"question : what is {first}{rest} ?"


def test_no_entity_or_relation_comes_twice_in_a_question():
    for task in World().tasks("train")[:500]:
        relations = [relation for _, relation in task.data["plan"]]
        subjects = [subject for subject, _ in task.data["plan"] if subject]
        values = task.gold_answers[0].split(" ")[::2]
        assert len(set(relations)) == len(relations)
        assert len({*subjects, *values}) == len(subjects) + len(values)


def test_every_prefix_is_balanced():
    tasks = World().tasks("train")
    for count in (5, 50, 1000, 4000):
        assert Counter(task.type for task in tasks[:count]) == dict.fromkeys(TYPES, count // 5)


def test_a_mix_sets_the_shares_of_every_prefix():
    # After n places a should have 3n/4 and b n/4; whoever lags more comes next, a at a tie:
    # (.75 .25) a, (.5 .5) a, (.25 .75) b, (1 0) a, and so on.
    assert interleave("ab", (3.0, 1.0), 8) == list("aabaaaba")
    mixed = World(chains=(1, 2), conjunctions=(), mix={"chain-1": 0.25, "chain-2": 0.75}, train=80)
    assert Counter(task.type for task in mixed.tasks("train")) == {"chain-1": 20, "chain-2": 60}


def test_no_question_of_dev_and_test_is_asked_twice():
    for split in ("dev", "test"):
        questions = [task.question for task in World().tasks(split)]
        assert len(set(questions)) == len(questions) == 600


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"chains": [], "conjunctions": []}, "both empty"),
        ({"chains": [9]}, "less than or equal to 4"),
        ({"conjunctions": [4]}, "less than or equal to 3"),
        ({"mix": {"chain-1": 1.0}}, "mix must name each of"),
    ],
)
def test_a_world_that_cannot_be_is_refused(fields, message):
    with pytest.raises(ValidationError, match=message):
        build("dataset", {"name": "world", **fields})


def test_the_vocabulary_is_small_fixed_and_without_repetition():
    words = vocabulary()
    assert len(words) == len(set(words)) <= 460
    assert words[:3] == ["\n", "<think>", " </think>"]
    assert words[-392:] == [f" {name}" for name in NAMES]
