"""Points for turns that are nothing but a thought and a call. Agent-R1 (2025).

https://arxiv.org/abs/2511.14460, the format part of its first generation's reward.
"""

from __future__ import annotations

import re
from typing import Annotated, ClassVar

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.rewards.protocol import Gives, View

Points = Annotated[float, Field(gt=0.0, le=1.0)]


@component("reward")
class FormatBlocks(Component):
    """min(`most`, `each` · well-formed turns), the last turn being formed by other rules.

    A turn before the last is a closed thought and one closed call with blanks between them. The
    last begins with a thought and ends on the closing tag of the answer; between the two any text
    may stand.
    """

    thought: str = "think"  # tag of the thought
    call: str = "tool_call"  # tag of a call
    answer: str = "answer"  # tag of the answer
    each: Points = 0.5
    most: Points = 1.0
    thought_is_open: bool = False  # the chat template has written the thought's opening tag already

    reads: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[Gives] = "trajectory"

    @property
    def range(self) -> tuple[float, float]:
        """From nothing to `most`."""
        return 0.0, self.most

    def score(self, view: View) -> float:
        """In [0, most]; 0 for a trajectory without turns."""
        opening = f"<{self.thought}>" if self.thought_is_open else ""
        turns = [f"{opening}{action}".strip() for action in view.actions]
        formed = sum(map(self._is_call, turns[:-1])) + sum(map(self._is_last, turns[-1:]))
        return min(self.most, self.each * formed)

    def _is_call(self, turn: str) -> bool:
        thought, call = self._body(self.thought), self._body(self.call)
        return re.fullmatch(rf"{thought}\s*{call}", turn, re.DOTALL) is not None

    def _is_last(self, turn: str) -> bool:
        thought, answer = self._body(self.thought), re.escape(self.answer)
        return re.fullmatch(rf"{thought}.*<{answer}>.*</{answer}>", turn, re.DOTALL) is not None

    @staticmethod
    def _body(tag: str) -> str:
        """One pair of a tag, in which the tag does not stand again."""
        name = re.escape(tag)
        return rf"<{name}>(?:(?!</?{name}>).)*</{name}>"
