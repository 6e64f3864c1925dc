"""What each token says, read from a run's ``model/tokenizer.json``; no tokenizer library needed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentrecipes.models.words import byte_letters


@dataclass(frozen=True, slots=True)
class Pieces:
    """Token id → its text; where the id is unknown, or half a character, a name for it."""

    words: Mapping[int, str]
    added: Mapping[int, str]
    byte_level: bool

    @classmethod
    def read(cls, path: Path) -> Pieces | None:
        """The pieces of a tokenizer file; None where there is none that can be read."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            vocabulary = data["model"]["vocab"]
            pairs = (
                ((number, word) for word, number in vocabulary.items())
                if isinstance(vocabulary, dict)
                else enumerate(entry[0] for entry in vocabulary)  # Unigram: [piece, score]
            )
            added = {each["id"]: each["content"] for each in data.get("added_tokens") or ()}
            return cls(dict(pairs), added, "ByteLevel" in _kinds(data.get("decoder")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
            return None

    def text(self, number: int) -> str:
        """``" next"``, ``"<|end|>"``, or ``"⟨e2⟩"`` for one byte of a longer character."""
        if number in self.added:
            return self.added[number]
        word = self.words.get(number)
        if word is None:
            return f"⟨#{number}⟩"
        if not self.byte_level:
            return word.replace("▁", " ")
        data = bytes(_BYTES[letter] for letter in word if letter in _BYTES)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return f"⟨{data.hex()}⟩"


def _kinds(decoder: Any) -> set[str]:
    """The types in a decoder, which may be a sequence of others."""
    if not isinstance(decoder, dict):
        return set()
    inner = [_kinds(each) for each in decoder.get("decoders") or ()]
    return {str(decoder.get("type")), *(kind for each in inner for kind in each)}


_BYTES = {letter: byte for byte, letter in enumerate(byte_letters())}
