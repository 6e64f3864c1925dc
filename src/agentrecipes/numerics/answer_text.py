"""Short answers as SQuAD compares them. Rajpurkar et al. 2016, https://arxiv.org/abs/1606.05250."""

from __future__ import annotations

import re
import string

ARTICLES = re.compile(r"\b(?:a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str, *, ignore_articles: bool = True) -> str:
    """`text` in lower case, without ASCII punctuation and articles, with single blanks.

    Punctuation is deleted, not turned into a blank: ``Eiffel-Tower`` becomes ``eiffeltower``.
    """
    text = text.lower().translate(PUNCTUATION)
    if ignore_articles:
        text = ARTICLES.sub(" ", text)
    return " ".join(text.split())
