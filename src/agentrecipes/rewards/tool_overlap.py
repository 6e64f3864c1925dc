"""How far calls agree with those that were wanted. ToolRL, Qian et al. 2025.

https://arxiv.org/abs/2504.13958
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, ClassVar

from agentrecipes.components import Component, component
from agentrecipes.records import Call
from agentrecipes.rewards.matching import best_total
from agentrecipes.rewards.protocol import Gives, View

OPTIONAL = ""  # among the accepted values of a parameter: it may be left out


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call that was wanted: ``Wanted("search", {"query": ("Rome",)})``; any value counts."""

    tool: str
    accepted: Mapping[str, Sequence[Any]]  # by parameter

    @property
    def required(self) -> frozenset[str]:
        """The parameters that a call must have."""
        return frozenset(key for key, values in self.accepted.items() if OPTIONAL not in values)

    def agreement(self, call: Call) -> float:
        """Overlap of the parameters' names, and the number of right values, of a call of its tool.

        An optional parameter with an accepted value counts neither for nor against.
        """
        right = {key for key, value in call.arguments.items() if self.accepts(key, value)}
        spare = right - self.required
        return _share(call.arguments.keys() - spare, self.required) + len(right & self.required)

    def accepts(self, key: str, value: Any) -> bool:
        """Whether the value is one of those that count; true is not 1."""
        known = self.accepted.get(key, ())
        return any(
            one == value and isinstance(one, bool) == isinstance(value, bool) for one in known
        )


@component("reward")
class ToolOverlap(Component):
    """``6 · (names + parameters + values) / best - 3``, in [-3, 3], over all turns' calls.

    ``names`` is the overlap of the two sets of tool names, |both| / |either|. Calls are paired with
    wanted ones of the same tool so that the rest is greatest: ``parameters`` sums the overlaps of
    parameter names of pairs, and ``values`` counts the parameters whose value is a wanted one.
    ``best`` is 1 + wanted calls + their parameters. Wanting nothing and calling nothing is worth
    3, wanting nothing and calling -3.
    The task's ``ground_truth`` is a list of ``{tool: {parameter: [accepted values]}}`` as in BFCL,
    where an accepted ``""`` makes a parameter optional, or of ``{name: tool, arguments: {…}}``.
    Null without it, or where it has another form.
    """

    range: ClassVar[tuple[float, float]] = (-3.0, 3.0)
    reads: ClassVar[frozenset[str]] = frozenset({"ground_truth"})
    gives: ClassVar[Gives] = "trajectory"

    def score(self, view: View) -> float | None:
        """In [-3, 3]."""
        wanted = wanted_calls(view.task.data.get("ground_truth"))
        if wanted is None:
            return None
        calls = [call for turn in view.calls for call in turn]
        asked, meant = {call.tool for call in calls}, {want.tool for want in wanted}
        gained = _share(asked, meant)
        for tool in asked & meant:
            theirs = [want for want in wanted if want.tool == tool]
            own = [call for call in calls if call.tool == tool]
            gained += best_total([[want.agreement(call) for call in own] for want in theirs])
        best = 1 + len(wanted) + sum(len(want.required) for want in wanted)
        return min(max(6.0 * gained / best - 3.0, -3.0), 3.0)  # rounding may step out of the range


def wanted_calls(truth: Any) -> list[Wanted] | None:
    """The calls that a ``ground_truth`` says, or None where it has no form that is known."""
    if not isinstance(truth, list | tuple):
        return None
    found = [_wanted(entry) for entry in truth]
    return None if None in found else [want for want in found if want is not None]


def _wanted(entry: Any) -> Wanted | None:
    if not isinstance(entry, Mapping):
        return None
    if isinstance(entry.get("name"), str) and isinstance(entry.get("arguments"), Mapping):
        return Wanted(entry["name"], {key: (value,) for key, value in entry["arguments"].items()})
    [*tools] = entry.items()
    if len(tools) != 1 or not isinstance(tools[0][1], Mapping):
        return None
    [(tool, parameters)] = tools
    if not all(isinstance(values, list | tuple) for values in parameters.values()):
        return None
    return Wanted(str(tool), dict(parameters))


def _share(one: Set[str], other: Set[str]) -> float:
    return len(one & other) / len(one | other) if one or other else 1.0
