"""The chosen option, named by its letter or by its text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from agentrecipes.components import Component, component
from agentrecipes.rewards.normalisation import normalise
from agentrecipes.rewards.protocol import Gives, View

LETTER = re.compile(
    r"(?:(?:the\s+)?(?:correct\s+|final\s+|best\s+)?(?:answer|option|choice)\s*(?:is|:)?\s*)?"
    r"[(\[]?\s*(?P<letter>[A-Za-z])\s*(?:[)\].:,]+(?P<after>.*))?",
    re.IGNORECASE | re.DOTALL,
)


@component("reward")
class MultipleChoice(Component):
    """1 if the answer chooses the right one of the task's options, else 0.

    The task brings ``options``, a mapping from letter to text, and a gold answer that is one of
    the letters or texts; null without them. An answer chooses by letter (``B``, ``(b)``,
    ``The answer is B.``, ``B) Rome``) or by the text of an option; one whose letter and text name
    two different options chooses nothing.
    """

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset({"golden_answers", "options"})
    gives: ClassVar[Gives] = "trajectory"

    def score(self, view: View) -> float | None:
        """A trajectory that never answered scores 0."""
        options = view.task.data.get("options")
        if not isinstance(options, Mapping) or not options:
            return None
        texts = {str(letter).upper(): str(text) for letter, text in options.items()}
        golds = {chosen(gold, texts) for gold in view.task.gold_answers} - {None}
        if not golds:
            return None
        return float(view.answer is not None and chosen(view.answer, texts) in golds)


def chosen(answer: str, options: Mapping[str, str]) -> str | None:
    """The letter of the option that `answer` names, or None; `options` has capital letters.

    A letter alone is a letter. Otherwise texts come first: ``C. difficile`` may be option A.
    """
    match = LETTER.fullmatch(answer.strip())
    letter = match["letter"].upper() if match and match["letter"].upper() in options else None
    after = normalise(match["after"] or "") if match else ""
    if letter and not after:
        return letter
    texts = {key: normalise(text) for key, text in options.items()}
    own = normalise(answer)
    for key, text in texts.items():
        if own and own == text:
            return key
    return letter if after not in texts.values() or after == texts.get(str(letter)) else None
