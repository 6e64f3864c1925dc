"""Where a turn stops is where its text first holds a stop string, whatever the tokens are."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from agentrecipes.engines.stopping import Stopping
from agentrecipes.models.words import word_tokenizer


@cache
def pairs():
    """A byte-level BPE whose tokens cut the stop strings at every place."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=330, initial_alphabet=alphabet, show_progress=False)
    texts = ["</search>", ">\n</sea", "rch>.", "h> a", "x</", "</answer>\n", "é!", "aé!b"]
    backend.train_from_iterator([text for text in texts for _ in range(9)], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="a")


@cache
def whole():
    return word_tokenizer([" </search>", " </answer>", "<think>", " a"])


@cache
def stopping(made):
    return Stopping(made(), len(made()) + 3)


def first_stop(made, stops, ids):
    """The tokens of `ids` up to the stop, found as the engine finds it, or None."""
    found = stopping(made).of(stops)
    for size in range(1, len(ids) + 1):
        last = ids[size - 1]
        unsure = bool(found.maybe[last]) and stopping(made).hit(found, ids[:size])
        if bool(found.sure[last]) or unsure:
            return size
    return None


TAGS = ("</search>", "</answer>")


@pytest.mark.parametrize("made", [pairs, whole])
@pytest.mark.parametrize("stops", [TAGS, ("é!",), ("a",)])
@given(data=st.data())
def test_the_stop_is_found_where_the_text_first_holds_it(made, stops, data):
    pieces = st.sampled_from(
        ["</search>", "</", "search", ">", "\n", " a", "é", "!", "</answer>", "x"]
    )
    text = "".join(data.draw(st.lists(pieces, max_size=12)))
    ids = made().encode(text, add_special_tokens=False)
    expected = None
    for size in range(1, len(ids) + 1):
        if any(stop in made().decode(ids[:size]) for stop in stops):
            expected = size
            break
    assert first_stop(made, stops, ids) == expected


def test_a_tag_that_is_one_word_costs_no_look_at_the_text():
    found = stopping(whole).of(TAGS)
    tag, other = whole().convert_tokens_to_ids(["Ġ</search>", "<think>"])
    assert (bool(found.sure[tag]), bool(found.maybe[tag])) == (True, False)
    assert (bool(found.sure[other]), bool(found.maybe[other])) == (False, False)


def test_a_last_token_that_says_more_than_the_tag_still_ends_it():
    # ">\n" ends </answer> and adds a newline
    ids = pairs().encode("a</answer>\n", add_special_tokens=False)
    assert pairs().decode(ids[:-1]).endswith("</answer>") is False
    assert first_stop(pairs, TAGS, ids) == len(ids)


def test_no_stop_strings_never_stop():
    found = stopping(pairs).of(())
    assert not bool(found.sure.any())
    assert not bool(found.maybe.any())
