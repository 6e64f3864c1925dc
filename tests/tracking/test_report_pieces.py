"""Tokens are shown with what they say, without any tokenizer library."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentrecipes.models.words import word_tokenizer
from agentrecipes.tracking.report.pieces import Pieces


def read(tmp_path, **data: Any):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return Pieces.read(path)


def test_the_pieces_of_the_tiny_tokenizer_together_are_the_text(tmp_path):
    tokenizer = word_tokenizer([" next", "\nnow"])
    tokenizer.save_pretrained(tmp_path)
    pieces = Pieces.read(tmp_path / "tokenizer.json")
    text = "<|user|> next\nnow other"
    ids = tokenizer(text)["input_ids"]
    assert "".join(pieces.text(number) for number in ids) == text
    assert pieces.text(ids[0]) == "<|user|>"


def test_half_a_character_is_shown_as_its_bytes(tmp_path):
    tokenizer = word_tokenizer([" next"])
    tokenizer.save_pretrained(tmp_path)
    pieces = Pieces.read(tmp_path / "tokenizer.json")
    ids = tokenizer("é")["input_ids"]  # UTF-8: c3 a9
    assert [pieces.text(number) for number in ids] == ["⟨c3⟩", "⟨a9⟩"]


def test_a_vocabulary_of_sentence_pieces_has_its_blanks(tmp_path):
    pieces = read(
        tmp_path,
        model={"vocab": [["<unk>", 0.0], ["▁next", -1.0], ["<0xE2>", -2.0]]},
        decoder={"type": "Sequence", "decoders": [{"type": "Replace"}, {"type": "ByteFallback"}]},
        added_tokens=[{"id": 0, "content": "<unk>"}],
    )
    assert [pieces.text(number) for number in (0, 1, 2, 9)] == ["<unk>", " next", "<0xE2>", "⟨#9⟩"]


def test_a_byte_level_decoder_is_found_in_a_sequence(tmp_path):
    decoder = {"type": "Sequence", "decoders": [{"type": "ByteLevel"}]}
    pieces = read(tmp_path, model={"vocab": {"Ġnext": 4}}, decoder=decoder)
    assert pieces.text(4) == " next"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"model": {"vocab": 3}}', '{"model": null}'])
def test_a_file_that_is_no_tokenizer_gives_none(tmp_path, text):
    path = tmp_path / "tokenizer.json"
    path.write_text(text)
    assert Pieces.read(path) is None
    assert Pieces.read(tmp_path / "missing.json") is None
