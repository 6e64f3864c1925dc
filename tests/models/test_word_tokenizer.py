"""The whole-word tokenizer: known words are one token, any other text comes back unchanged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrecipes.datasets.knowledge import vocabulary
from agentrecipes.errors import RecipeError
from agentrecipes.models.words import SPECIAL, word_tokenizer

TOKENIZER = word_tokenizer(vocabulary())
AWKWARD = st.sampled_from(
    [
        "<0x41>",
        "<|user|>",
        "<|end|>",
        "<pad>",
        " ",
        "\n",
        "\r\n",
        "\u2028",
        "\x00",
        "😀",
        "Ġ",
        " author",
    ]
)


def encode(text: str, split_special_tokens: bool = False) -> list[int]:
    return TOKENIZER(
        text, add_special_tokens=False, split_special_tokens=split_special_tokens
    ).input_ids


@given(st.lists(st.one_of(st.text(), AWKWARD)).map("".join), st.booleans())
def test_decoding_what_was_encoded_gives_the_same_text(text, split):
    assert TOKENIZER.decode(encode(text, split)) == text


def test_every_word_of_the_vocabulary_is_one_token():
    assert [word for word in vocabulary() if len(encode(word)) != 1] == []


def test_a_written_action_has_one_token_a_word():
    # <think>, next, author, </think>, <search>, kalen, 's, author, </search>
    assert len(encode("<think> next author </think> <search> karax 's author </search>")) == 9


def test_an_unknown_word_is_its_bytes_and_the_blank_before_it():
    # blank, z, and the two bytes of é
    assert len(encode(" zé")) == 4


def test_special_tokens_come_first_and_pad_is_zero():
    assert [TOKENIZER.convert_tokens_to_ids(text) for text in SPECIAL] == [0, 1, 2, 3, 4, 5]
    assert (TOKENIZER.pad_token_id, TOKENIZER.eos_token_id) == (0, 1)


def test_text_that_looks_like_a_special_token_can_stay_text():
    assert encode("<|user|>") == [2]
    assert 2 not in encode("<|user|>", split_special_tokens=True)


def test_a_saved_tokenizer_is_the_same_when_it_is_loaded(tmp_path):
    from transformers import AutoTokenizer

    TOKENIZER.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    text = "question : what is  karax ?\n2. <0x41> é"
    assert loaded(text).input_ids == encode(text)
    assert loaded.decode(encode(text)) == text
    assert loaded.chat_template == TOKENIZER.chat_template
    assert len(loaded) == len(TOKENIZER)


def test_only_assistant_messages_are_closed_in_the_template():
    chat = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": "a"},
        {"role": "tool", "content": "t"},
    ]
    text = TOKENIZER.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    assert text == "<|system|>s<|user|>u<|assistant|>a<|end|><|tool|>t<|assistant|>"


@pytest.mark.parametrize("word", ["two words", "a ", "", "\n\n", "<|user|>", " <pad>"])
def test_a_word_that_could_never_be_met_is_refused(word):
    with pytest.raises(RecipeError, match="is not one word"):
        word_tokenizer([word])
