r"""Numbers as answers write them, read without running anything: exact, and never an expression.

Read are integers, decimals (``.5``), thousands (``1,234``), powers of ten (``1.2e3``, ``2 \times
10^{3}``), fractions (``3/4``, ``\frac{3}{4}``, ``\frac34``, ``\dfrac``, ``\tfrac``), signs, and
what may stand around one: dollar signs, a percent sign (``50\%`` is 50), degrees, a unit in
``\text{}``, a full stop. Pairs and intervals in brackets and sets in braces are read item by item.
Roots, variables, sums and mixed numbers are not: of those, `plainest` makes a text to compare.
"""

from __future__ import annotations

import re
from fractions import Fraction

LONGEST = 400  # characters; a longer text is no number
POWER = 400  # greatest power of ten, so that no answer asks for gigabytes
BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{")
STYLE = re.compile(r"\\(?:left|right|displaystyle|mathrm|mathbf|[,;:!]|quad)(?![A-Za-z])")
TEXT = re.compile(r"\\(?:text|mbox)\s*\{[^{}]*\}")
AROUND = re.compile(r"\\?\$|\\?%|\^\s*\{?\s*\\circ\s*\}?|\\(?:circ|degree)(?![A-Za-z])|°")
BRACES = re.compile(r"\\[dt]frac\b")
SHORT = re.compile(r"\\frac\s*(?:(\d)\s*(\d)|\{([^{}]*)\}\s*(\d)|(\d)\s*\{([^{}]*)\})(?!\d)")
LATEX = re.compile(r"([+-]?)\\frac\{([^{}]+)\}\{([^{}]+)\}")
THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
TENS = re.compile(r"(?:\\times|\\cdot|\*|×)10\^(?:\{([+-]?\d+)\}|(\d+))$")
DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d+))?")
BRACKETS = {"(": ")]", "[": ")]", "\\{": ("\\}",)}


def boxed(text: str) -> str:
    r"""What stands in the last closed ``\boxed{}``; the text itself without one."""
    for match in reversed(list(BOXED.finditer(text))):
        depth = 1
        for place in range(match.end(), len(text)):
            depth += (text[place] == "{") - (text[place] == "}")
            if depth == 0:
                return text[match.end() : place]
    return text


def plainest(text: str) -> str:
    """The text without blanks and what is only for the eye, fractions in one form."""
    text = STYLE.sub("", TEXT.sub("", text)).replace("−", "-")
    text = BRACES.sub(r"\\frac", AROUND.sub("", text))
    text = SHORT.sub(_spelled, text)
    return "".join(text.split()).rstrip(".")


def _spelled(match: re.Match[str]) -> str:
    above, below = [group for group in match.groups() if group is not None]
    return rf"\frac{{{above}}}{{{below}}}"


def number(text: str) -> Fraction | None:
    """The number that a `plainest` text says, or None."""
    if len(text) > LONGEST:
        return None
    if match := LATEX.fullmatch(text):
        value = _ratio(match[2], match[3])
        return -value if value is not None and match[1] == "-" else value
    above, slash, below = text.partition("/")
    return _ratio(above, below) if slash else _decimal(text)


def _ratio(above: str, below: str) -> Fraction | None:
    one, other = _decimal(above), _decimal(below)
    return one / other if one is not None and other else None


def _decimal(text: str) -> Fraction | None:
    if THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    power = 0
    if match := TENS.search(text):
        power, text = _power(match[1] or match[2]), text[: match.start()]
    match = DECIMAL.fullmatch(text)
    if match is None:
        return None
    power += _power(match[1] or "0")
    if abs(power) > POWER:
        return None
    return Fraction(re.split("[eE]", text)[0]) * Fraction(10) ** power


def _power(digits: str) -> int:
    return int(digits) if len(digits) <= len(str(POWER)) + 1 else POWER + 1


def items(text: str) -> tuple[str, list[str]] | None:
    r"""The brackets and the items of a `plainest` list ``(1,2]`` or set ``\{1,2\}``, or None."""
    for opening, closings in BRACKETS.items():
        for closing in closings:
            inside = text[len(opening) : -len(closing)]
            if text.startswith(opening) and text.endswith(closing) and "," in inside:
                return opening + closing, inside.split(",")
    return None
