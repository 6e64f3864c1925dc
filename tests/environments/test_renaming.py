"""Interchangeable names under a permutation."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentrecipes.environments.renaming import Renaming, permutation
from agentrecipes.records import Passage, Task

NAMES = frozenset({"ann", "bob", "cid", "dan", "50%", "%s"})
WORDS = st.sampled_from([*sorted(NAMES), "anna", "is", "bob's", "'s", "%", "{}", "\n2.", "é"])
TEXTS = st.lists(WORDS, max_size=12).map(" ".join)


@given(TEXTS, st.integers(0, 2**62))
def test_the_old_names_come_back(text, seed):
    renaming = Renaming(NAMES, seed)
    assert renaming.original(renaming.text(text)) == text


@given(TEXTS, st.integers(0, 2**62))
def test_only_whole_words_change_and_equal_names_stay_equal(text, seed):
    words, renamed = text.split(), Renaming(NAMES, seed).text(text).split()
    assert len(words) == len(renamed)
    assert len(set(zip(words, renamed, strict=True))) == len(set(words))
    for old, new in zip(words, renamed, strict=True):
        assert (new in NAMES) if old in NAMES else new == old


def test_a_seed_fixes_the_permutation_and_seeds_differ():
    drawn = [Renaming(NAMES, seed).text("ann bob cid dan") for seed in range(50)]
    assert drawn == [Renaming(NAMES, seed).text("ann bob cid dan") for seed in range(50)]
    assert len(set(drawn)) > 25


def test_the_permutation_of_numbers_is_that_of_the_sorted_names():
    names = sorted(NAMES)
    for seed in range(20):
        order = permutation(len(names), seed)
        renamed = [Renaming(NAMES, seed).text(name) for name in names]
        assert renamed == [names[place] for place in order]


def test_a_name_takes_every_place_about_equally_often():
    drawn = [Renaming(NAMES, seed).text("ann") for seed in range(3000)]
    # 3000 / 6 = 500 of each, standard deviation about 20
    assert all(400 < drawn.count(name) < 600 for name in NAMES)


def test_a_task_is_renamed_everywhere_but_in_its_id():
    renaming = Renaming(NAMES, 3)
    new = renaming.text
    data = {"plan": (("ann", "likes"), (None, "likes")), "ids": ["ann"], "hops": 2}
    posed = renaming.task(Task("ann", "train", "who likes ann ?", ("bob and cid",), data))
    assert (posed.id, posed.question) == ("ann", f"who likes {new('ann')} ?")
    assert posed.gold_answers == (f"{new('bob')} and {new('cid')}",)
    assert posed.data["plan"] == ((new("ann"), "likes"), (None, "likes"))
    assert (posed.data["ids"], posed.data["hops"]) == ([new("ann")], 2)


def test_a_passage_keeps_its_id():
    renaming = Renaming(NAMES, 3)
    shown = renaming.passage(Passage("ann", "ann", "ann is bob"))
    assert shown == Passage("ann", renaming.text("ann"), renaming.text("ann is bob"))
