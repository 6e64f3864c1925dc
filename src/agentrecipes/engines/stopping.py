"""Which tokens end a turn, found out once for each set of stop strings and not at each token.

Stop strings are found in decoded text, because a tokenizer may spread one over several tokens, and
its last token may say more than its end. Ids are kept as sampled in any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

BROKEN = "\ufffd"  # how a piece of a character decodes
CONTEXT = 4  # tokens before the stop string's own that are decoded with it


@dataclass(frozen=True, slots=True)
class StopSet:
    """What each token id does to a turn with given stop strings."""

    strings: tuple[str, ...]
    sure: Tensor  # (V,) bool: the token says a whole stop string
    maybe: Tensor  # (V,) bool: the token may be the end of one; the text before it decides
    window: int  # tokens at the end of a turn that can hold a stop string


class Stopping:
    """The tokenizer's text by token, and the stop sets that were asked for."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, size: int) -> None:
        self._tokenizer = tokenizer
        self._size = size  # rows of the model's embedding; it may exceed the tokenizer's
        self._texts: list[str] = []
        self._sets: dict[tuple[str, ...], StopSet] = {}

    def of(self, strings: tuple[str, ...]) -> StopSet:
        """The stop set of `strings`; the first one reads the whole vocabulary."""
        if strings not in self._sets:
            self._sets[strings] = self._make(strings)
        return self._sets[strings]

    def hit(self, stops: StopSet, ids: Sequence[int]) -> bool:
        """Whether a turn of `ids` holds a stop string near its end."""
        text = self.text(list(ids[-stops.window :]))
        return any(string in text for string in stops.strings)

    def first(self, stops: StopSet, ids: Sequence[int]) -> int | None:
        """The place of the token of `ids` that completes a stop string; None if none does."""
        drawn = torch.tensor(ids, dtype=torch.int64)
        unsure = stops.maybe[drawn].tolist()
        for place in (stops.sure | stops.maybe)[drawn].nonzero()[:, 0].tolist():
            if not unsure[place] or self.hit(stops, ids[: place + 1]):
                return int(place)
        return None

    def text(self, ids: list[int]) -> str:
        """What `ids` say, special tokens included and blanks untouched."""
        return str(
            self._tokenizer.decode(
                ids, skip_special_tokens=False, clean_up_tokenization_spaces=False
            )
        )

    def _make(self, strings: tuple[str, ...]) -> StopSet:
        sure = torch.zeros(self._size, dtype=torch.bool)
        maybe = torch.zeros(self._size, dtype=torch.bool)
        if strings:
            if not self._texts:
                self._texts = [self.text([i]) for i in range(len(self._tokenizer))]
            ends = {string[-size:] for string in strings for size in range(1, len(string))}
            broken = any(not string.isascii() for string in strings)
            for index, text in enumerate(self._texts[: self._size]):
                sure[index] = any(string in text for string in strings)
                maybe[index] = any(text.startswith(end) for end in ends) or (
                    broken and BROKEN in text
                )
        longest = max((len(string.encode()) for string in strings), default=0)
        return StopSet(strings, sure=sure, maybe=maybe & ~sure, window=longest + CONTEXT)


def end_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> list[int]:
    """Tokens that end a turn: the tokenizer's, and those of the model's generation settings."""
    settings: Any = getattr(model, "generation_config", None)
    ends = getattr(settings, "eos_token_id", None)
    listed = ends if isinstance(ends, list) else [ends]
    return sorted({end for end in [tokenizer.eos_token_id, *listed] if isinstance(end, int)})
