"""Messages ↔ tokens: the chat template is taken apart once, and nothing is tokenised twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from agentrecipes.errors import RecipeError
from agentrecipes.records import Message, Source

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

Role = Literal["inline", "user", "tool"]
Labelled = tuple[tuple[int, ...], tuple[Source, ...]]
MARKS = ("alpha0q", "beta1q", "gamma2q", "delta3q", "omega4q")  # contents that no template writes
CACHED = 65536  # texts whose ids are remembered


@dataclass(frozen=True, slots=True)
class Loop:
    """What the template writes in the tool loop: user → assistant → observation → assistant."""

    opening: str  # from the end of the first message to where the assistant writes
    before: str  # from the end of the assistant's message to the observation
    after: str  # from the end of the observation to where the assistant writes


class Chat:
    """A tokenizer's chat template in pieces.

    Example (ChatML): after an action that ended with ``<|im_end|>``, the observation "4" of role
    user is the ids of ``\\n<|im_start|>user\\n``, of ``4``, and of
    ``<|im_end|>\\n<|im_start|>assistant\\n``.
    Contents are encoded on their own, so that text that looks like a special token stays text.

    Raises:
        RecipeError: the tokenizer has no chat template, or one that is not stable in the tool loop.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        if not tokenizer.chat_template:
            raise RecipeError(
                "model: the tokenizer has no chat template. Take the model's instruct variant"
            )
        self.tokenizer = tokenizer
        self._loops: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self._openings: dict[tuple[str, ...], list[tuple[int, ...]]] = {}
        self.eos: int = tokenizer.eos_token_id
        self.encode: Callable[[str], tuple[int, ...]] = lru_cache(CACHED)(self._encode)
        self.verify("user")

    @classmethod
    def take_apart(cls, tokenizer: PreTrainedTokenizerFast) -> Chat:
        """The tokenizer's template in pieces, verified for inline and user observations."""
        return cls(tokenizer)

    def verify(self, role: Role) -> None:
        """Take the template apart for observations of `role`, and compare with the whole.

        Raises:
            RecipeError: the pieces do not add up to what the template writes.
        """
        key = "user" if role == "inline" else role
        if key not in self._loops:
            loop = _take_apart(self._render, key)
            self._loops[key] = (self._pieces(loop.before), self._pieces(loop.after))
            self._compare(loop, key)

    def prompt(self, messages: Sequence[Message]) -> Labelled:
        """The ids of opening messages up to where the assistant writes; all are PROMPT."""
        roles = tuple(message.role for message in messages)
        if roles not in self._openings:
            self._openings[roles] = [self._pieces(piece) for piece in self._around(roles)]
        first, *rest = self._openings[roles]
        ids = list(first)
        for message, piece in zip(messages, rest, strict=True):
            ids.extend(self.encode(message.content))
            ids.extend(piece)
        return tuple(ids), (Source.PROMPT,) * len(ids)

    def observation(self, text: str, role: Role, *, ended: bool) -> Labelled:
        """What follows an action: the observation's ids and the template's, labelled one by one.

        `ended`: the policy sampled the token that ends its message. An inline observation then has
        no message left to go on in, and becomes a user's.
        """
        own = self.encode(text)
        if role == "inline" and not ended:
            return own, (Source.OBSERVATION,) * len(own)
        self.verify(role)
        before, after = self._loops["user" if role == "inline" else role]
        if ended and self.eos in before:
            before = before[before.index(self.eos) + 1 :]
        sources = (
            (Source.TEMPLATE,) * len(before)
            + (Source.OBSERVATION,) * len(own)
            + (Source.TEMPLATE,) * len(after)
        )
        return (*before, *own, *after), sources

    def action(self, text: str, *, close: bool) -> tuple[int, ...]:
        """The ids of a written action as a policy would sample it; `close`: with its end token."""
        return (*self.encode(text), *((self.eos,) if close else ()))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`, blanks and special tokens as they are."""
        return str(self.tokenizer.backend_tokenizer.decode(list(ids), skip_special_tokens=False))

    def _encode(self, text: str) -> tuple[int, ...]:
        encoded: Any = self.tokenizer(text, add_special_tokens=False, split_special_tokens=True)
        return tuple(encoded["input_ids"])

    def _pieces(self, text: str) -> tuple[int, ...]:
        """The ids of what the template itself writes, special tokens as such."""
        encoded: Any = self.tokenizer(text, add_special_tokens=False, split_special_tokens=False)
        return tuple(encoded["input_ids"])

    def _render(self, messages: Sequence[tuple[str, str]]) -> str:
        """The template's text; a refusal of the template is the recipe's problem."""
        chat = [{"role": role, "content": content} for role, content in messages]
        try:
            text: Any = self.tokenizer.apply_chat_template(
                chat, tokenize=False, add_generation_prompt=True
            )
        except Exception as error:  # templates raise whatever they like
            roles = ", ".join(role for role, _ in messages)
            raise RecipeError(
                f"model: the chat template cannot write the messages {roles}: {error}. "
                f"Take a protocol or a prompt without that role"
            ) from error
        return str(text)

    def _around(self, roles: tuple[str, ...]) -> list[str]:
        """The template's own text before, between and after messages of `roles`."""
        marks = [f"mark{index}q" for index in range(len(roles))]
        return _split(self._render(list(zip(roles, marks, strict=True))), marks)

    def _compare(self, loop: Loop, role: str) -> None:
        """Ids by pieces must read like the template's own text."""
        first, action, observed = MARKS[:3]
        chat = [("user", first), ("assistant", action), (role, observed)]
        ids, _ = self.prompt([Message("user", first)])
        ids += self.encode(action)
        ids += self.observation(observed, "tool" if role == "tool" else "user", ended=False)[0]
        if self.decode(ids) != self._render(chat):
            raise RecipeError(
                f"model: the chat template's pieces decode to {self.decode(ids)!r} and not to "
                f"{self._render(chat)!r}. Take a model whose tokenizer keeps blanks"
            )


def _take_apart(render: Callable[[Sequence[tuple[str, str]]], str], role: str) -> Loop:
    """Render the tool loop once and twice; what stands between the contents must be the same."""
    first, action, observed, second, again = MARKS
    opening = _split(render([("user", first)]), [first])
    chat = [("user", first), ("assistant", action), (role, observed)]
    once = _split(render(chat), [first, action, observed])
    chat += [("assistant", second), (role, again)]
    twice = _split(render(chat), [first, action, observed, second, again])
    loop = Loop(opening[1], before=once[2], after=once[3])
    expected = [opening[0], loop.opening, loop.before, loop.after, loop.before, loop.after]
    for found, wanted in [(once, expected[:4]), (twice, expected)]:
        for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
            if one != other:
                raise RecipeError(
                    f"model: the chat template is not stable in the tool loop: as messages go on, "
                    f"piece {place} changes from {other!r} to {one!r}. Take the template of a "
                    f"model that keeps earlier messages as they were"
                )
    return loop


def _split(text: str, marks: Sequence[str]) -> list[str]:
    """`text` cut at every mark."""
    pieces = []
    for mark in marks:
        before, found, text = text.partition(mark)
        if not found or mark in text:
            raise RecipeError(
                f"model: the chat template leaves out, repeats or rewrites a message's text: "
                f"{mark!r} is not there exactly once and in order. Take a template that shows "
                f"every message"
            )
        pieces.append(before)
    return [*pieces, text]
