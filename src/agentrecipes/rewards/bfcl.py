"""Were the functions called that a case of BFCL accepts?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, ClassVar, Literal

from agentrecipes.components import Component, component
from agentrecipes.errors import Problem
from agentrecipes.records import Call
from agentrecipes.rewards import bfcl_official, function_calls
from agentrecipes.rewards.protocol import Gives, View


@component("reward")
class Bfcl(Component):
    """1 or 0: the calls of the whole trajectory against a case's ``ground_truth``.

    Names, arguments and values are checked as the Berkeley Function Calling Leaderboard does it
    (Patil et al. 2025, https://gorilla.cs.berkeley.edu). A case of a category with ``irrelevance``
    wants no call, one of ``relevance`` some call, whatever it says; as there, a message that cannot
    be read calls nothing. `official` asks the checker of bfcl-eval (``pip install --no-deps
    bfcl-eval==2026.3.23``); `own` needs nothing and gives the same verdicts. Null without a case.
    """

    checker: Literal["own", "official"] = "own"

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset({"category", "functions", "ground_truth"})
    gives: ClassVar[Gives] = "trajectory"

    def rules(self, stage: Any) -> Iterable[Problem]:
        """The official checker is installed where it is wanted."""
        if self.checker == "official" and find_spec("bfcl_eval") is None:
            command = f"Install it: pip install --no-deps {bfcl_official.PACKAGE}."
            yield Problem("missing_extra", "checker", "BFCL's checker is not installed", command)

    def require(self) -> None:
        """Import what is needed.

        Raises:
            MissingExtra: the official checker is wanted and not installed.
        """
        if self.checker == "official":
            bfcl_official.checker()

    def score(self, view: View) -> float | None:
        """1.0 where the calls are accepted.

        Raises:
            MissingExtra: the official checker is wanted and not installed.
        """
        data = view.task.data
        if not self.reads <= set(data):
            return None
        calls = [call for turn in view.calls for call in turn]
        return float(accepted(data, calls, official=self.checker == "official"))


def accepted(data: Mapping[str, Any], calls: Sequence[Call], *, official: bool = False) -> bool:
    """Whether the case with that data accepts `calls`."""
    category = str(data["category"])
    if "irrelevance" in category:
        return not calls
    if "relevance" in category:
        return bool(calls)
    check = bfcl_official.accepts if official else function_calls.accepts
    return check(category, data["functions"], calls=calls, gold=data["ground_truth"])
