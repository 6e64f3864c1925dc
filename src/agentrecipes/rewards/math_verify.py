"""Equality of mathematical answers as Math-Verify and sympy see it."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.rewards.equivalence import equivalent, require
from agentrecipes.rewards.math_equal import MathEqual
from agentrecipes.rewards.protocol import Gives, View
from agentrecipes.rewards.quantities import boxed

LONGEST = 1000  # characters of an answer that is compared


@component("reward")
class MathVerify(Component):
    r"""1 if the answer equals any gold answer after simplification, else 0; null without gold.

    What `math_equal` finds equal is equal. All else is read as LaTeX or as an expression and
    compared by sympy: ``x + \frac12`` is ``0.5 + x``, ``\sqrt{8}`` is ``2\sqrt2``. Of an answer
    with ``\boxed{}`` the last box counts. It is done in a process of its own; what takes longer
    than `seconds` is not equal. Needs Math-Verify (https://github.com/huggingface/Math-Verify).
    """

    seconds: Annotated[float, Field(gt=0.0)] = 5.0  # of CPU time, for one comparison

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset({"golden_answers"})
    gives: ClassVar[Gives] = "trajectory"

    def require(self) -> None:
        """Hold that it is installed.

        Raises:
            MissingExtra: it is not.
        """
        require()

    def score(self, view: View) -> float | None:
        """A trajectory that never answered scores 0.

        Raises:
            MissingExtra: Math-Verify is not installed.
        """
        golds = [boxed(gold).strip().strip("$") for gold in view.task.gold_answers]
        if not golds:
            return None
        if view.answer is None:
            return 0.0
        if MathEqual().score(view) == 1.0:
            return 1.0
        own = boxed(view.answer).strip().strip("$")
        if not own or len(own) > LONGEST:
            return 0.0
        return float(any(equivalent(gold, own, self.seconds) for gold in golds))
