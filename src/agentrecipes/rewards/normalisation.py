"""How rewards compare an answer with gold answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agentrecipes.numerics.answer_text import normalise

__all__ = ["holds", "matches", "normalise", "overlap", "tellable"]

VERDICTS = frozenset({"yes", "no", "noanswer"})  # half right is wrong where one of these is meant


def matches(answer: str, golds: Sequence[str], *, ignore_articles: bool = True) -> bool:
    """Whether `answer` is one of `golds` after normalisation."""
    own = normalise(answer, ignore_articles=ignore_articles)
    return any(own == normalise(gold, ignore_articles=ignore_articles) for gold in golds)


def tellable(golds: Sequence[str], *, ignore_articles: bool = True) -> list[str]:
    """The golds, normalised, without those of which nothing is left: they are in every text."""
    normal = (normalise(gold, ignore_articles=ignore_articles) for gold in golds)
    return [gold for gold in dict.fromkeys(normal) if gold]


def holds(text: str, gold: str, *, whole_words: bool) -> bool:
    """Whether normalised `text` has the normalised `gold` in it, anywhere or as whole words."""
    return f" {gold} " in f" {text} " if whole_words else gold in text


def overlap(answer: str, gold: str, *, ignore_articles: bool = True) -> float:
    """Token F1 in [0, 1]; 0 where one side is yes, no or noanswer and the other differs.

    ARPO (2025, https://arxiv.org/abs/2507.19849), after HotpotQA's evaluation.
    """
    own = normalise(answer, ignore_articles=ignore_articles)
    other = normalise(gold, ignore_articles=ignore_articles)
    if own != other and VERDICTS & {own, other}:
        return 0.0
    own_words, other_words = Counter(own.split()), Counter(other.split())
    shared = (own_words & other_words).total()
    if not shared:
        return 0.0
    precision, recall = shared / own_words.total(), shared / other_words.total()
    return 2 * precision * recall / (precision + recall)
