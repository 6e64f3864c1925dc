"""FunReason's five checks of a sampled function call."""

from __future__ import annotations

from typing import ClassVar, Literal

from agentrecipes.components import Component, component
from agentrecipes.rewards.algebra import Held, computed, whole
from agentrecipes.rewards.bfcl import accepted
from agentrecipes.rewards.protocol import Gives, View

Check = Literal["call", "tools", "thought", "arguments", "format"]
CHECKS: tuple[Check, ...] = ("call", "tools", "thought", "arguments", "format")
ENOUGH = 0.5  # of the reward that reads thoughts


@component("reward")
class Fcdr(Component):
    """1 for a trajectory that passes the checks up to `through`, in their order; else 0.

    ``call``: it calls at all. A case in which no function fits, answered without a call, is kept as
    it is and passes everything. ``tools``: the case can be solved, and each call is of one of its
    functions. ``thought``: there is one, it names each function that is called, and `judge`, if one
    is given, rates the trajectory 0.5 or more. ``arguments``: the gold calls are accepted, as BFCL
    does it. ``format``: nothing stands in the message but one thought and the calls.

    After FCDR of FunReason (Hao et al. 2025, https://arxiv.org/abs/2505.20192), where QwQ-32B makes
    the checks, a sample that fails the second or third is dropped and one that fails a later one is
    written again; here other attempts of its group are what is written again. Null without a case.
    """

    through: Check = "format"  # the last check that is made
    judge: Held | None = None  # rates thoughts: {name: judge, …}

    reads: ClassVar[frozenset[str]] = frozenset({"category", "functions", "ground_truth"})
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    gives: ClassVar[Gives] = "trajectory"

    def score(self, view: View) -> float | None:
        """1.0 or 0.0; null where the judge has no verdict."""
        data = view.task.data
        if not self.reads <= set(data):
            return None
        calls = [call for turn in view.calls for call in turn]
        if "irrelevance" in str(data["category"]):
            return float(not calls and view.answer is not None)
        names = {str(one["name"]) for one in data["functions"]}
        thought = view.actions[-1].rpartition("</think>")[0] if view.actions else ""
        for check in CHECKS[: CHECKS.index(self.through) + 1]:
            passed: bool | None = bool(calls)
            if check == "tools":
                passed = all(call.tool in names for call in calls)
            elif check == "thought":
                passed = all(call.tool in thought for call in calls) and self._sound(view)
            elif check == "arguments":
                passed = accepted(data, calls)
            elif check == "format":
                passed = all(view.valid) and plain(view.actions[-1])
            if not passed:
                return None if passed is None else 0.0
        return 1.0

    def _sound(self, view: View) -> bool | None:
        if self.judge is None:
            return True
        value, _ = computed(self.judge, view, "judge")
        return None if value is None else whole(value) >= ENOUGH


def plain(message: str) -> bool:
    """Whether a message is one closed thought, and then calls alone."""
    head, closed, rest = message.strip().partition("</think>")
    if not closed or not head.startswith("<think>") or "think>" in rest:
        return False
    return rest.strip().startswith(("[", "<tool_call>"))
