"""A tokenizer that writes known words as one token and everything else as bytes.

Text is cut into words that keep the one blank or newline before them; a word of the vocabulary is
one token, any other is the tokens of its UTF-8 bytes. So ``decode(encode(text)) == text`` for every
text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentrecipes.errors import RecipeError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PAD, END = "<pad>", "<|end|>"
SPECIAL = (PAD, END, "<|user|>", "<|assistant|>", "<|system|>", "<|tool|>")  # their ids are 0, 1, …
WORD = r"[ \n]?\S+|\s"  # every character is in exactly one match
CODE = r"[ \n]?</?\w+>|[ \n]?\w+|[ \n]?[^\w\s]|\s"  # the same; brackets and quotes stand alone
# Broken up, so that text which looks like a special token is not found in the vocabulary as a word.
LOOKALIKE = r"<\||<(?=pad>)"

# Only an assistant's message is closed: what other messages say ends where the next one opens.
TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|' + message['role'] + '|>' + message['content'] }}"
    "{% if message['role'] == 'assistant' %}{{ '<|end|>' }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def word_tokenizer(
    words: Sequence[str], longest: int = 2048, *, cut: str = WORD
) -> PreTrainedTokenizerFast:
    """A tokenizer for `words` and, byte by byte, for any other text, with a chat template.

    Ids: the special tokens, then 256 bytes, then `words` in their order. `longest` is the model's
    context in tokens, `cut` the pattern of a word.

    Raises:
        RecipeError: a word could never be met, because the text is not cut like that.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE(vocab=_vocabulary(words, cut), merges=[], ignore_merges=True))
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(cut), behavior="isolated"),
            pre_tokenizers.Split(Regex(LOOKALIKE), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(text, normalized=False) for text in SPECIAL])
    fast: Any = PreTrainedTokenizerFast
    tokenizer: PreTrainedTokenizerFast = fast(
        tokenizer_object=backend,
        pad_token=PAD,
        eos_token=END,
        additional_special_tokens=list(SPECIAL[2:]),
        chat_template=TEMPLATE,
        clean_up_tokenization_spaces=False,
        model_max_length=longest,
    )
    return tokenizer


def _vocabulary(words: Sequence[str], cut: str) -> dict[str, int]:
    alphabet = byte_letters()
    pieces = [*SPECIAL, *alphabet]
    for word in words:
        if re.findall(cut, word) != [word] or re.search(LOOKALIKE, word):
            raise RecipeError(f"vocabulary: {word!r} is not one word. Give one word an entry")
        pieces.append("".join(alphabet[byte] for byte in word.encode()))
    return {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}


def byte_letters() -> list[str]:
    """The printable letter that stands for each byte in byte-level vocabularies (GPT-2's table)."""
    plain = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = [byte for byte in range(256) if byte not in plain]
    shifted = {byte: chr(256 + index) for index, byte in enumerate(others)}
    return [shifted.get(byte, chr(byte)) for byte in range(256)]
