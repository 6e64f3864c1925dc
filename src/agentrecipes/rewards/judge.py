"""What a model says of a trajectory: yes or no, a score, or which of two answers is better."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar, Literal

from agentrecipes.components import Component, component
from agentrecipes.errors import Problem
from agentrecipes.judges.asking import ask
from agentrecipes.judges.fence import filled, places
from agentrecipes.rewards import judging
from agentrecipes.rewards.protocol import Gives, View

USUAL = {"yes_no": "correct", "score": "quality", "pairwise": "better"}
YES = {"yes": 1.0, "no": 0.0}
FIRST = {"a": 1.0, "tie": 0.5, "b": 0.0}  # the answer stands first
SECOND = {"a": 0.0, "tie": 0.5, "b": 1.0}


@component("reward")
class Judge(Component):
    """In [0, 1]: 1 for yes, 0 for no; a score's place between `low` and `high`; or a comparison.

    `pairwise` compares the answer with `against`, asks twice with the two in either place, and
    means both verdicts, so that a judge that prefers a place says nothing. A reply that is not
    exactly a verdict is null, and so is a judge that fails; both are counted. A trajectory without
    an answer is worth 0 and nobody is asked, where the prompt shows the answer.
    """

    judge: judging.JudgeOf  # who is asked
    ask: Literal["yes_no", "score", "pairwise"] = "yes_no"
    prompt: judging.Prompt | None = (
        None  # text with {question}, {gold}, {answer}, {transcript}, {thoughts} or fields of the
        # task in it; a file beside the recipe; or a shipped one's name; null: the usual one
    )
    low: float = 0.0  # of a score: what is worth 0
    high: float = 10.0  # of a score: what is worth 1
    against: str = "gold"  # of pairwise: field of the task with the other answer; gold: the first
    longest: judging.Longest = judging.LONGEST  # characters of each text that the judge is shown

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    gives: ClassVar[Gives] = "trajectory"

    @property
    def template(self) -> str:
        """The prompt with its places."""
        return judging.template(self.prompt or USUAL[self.ask])

    @property
    def _filled_here(self) -> frozenset[str]:
        return frozenset({"score": {"scale"}, "pairwise": {"first", "second"}}.get(self.ask, set()))

    @property
    def _shown(self) -> list[str]:
        names = [name for name in places(self.template) if name not in self._filled_here]
        return [*names, self.against] if self.ask == "pairwise" else names

    @property
    def reads(self) -> frozenset[str]:
        """What the prompt shows of a task."""
        return judging.read_fields(self._shown)

    def rules(self, stage: Any) -> Iterable[Problem]:
        """The prompt shows what is judged; the fields of one way of asking stand beside it."""
        yield from judging.prompt_problems(self.template, self._filled_here)
        if self.low >= self.high:
            found = f"nothing lies between low: {self.low:g} and high: {self.high:g}"
            yield Problem("contradiction", "low", found, f"Write less than {self.high:g}.")
        for way, names in (("score", ("low", "high")), ("pairwise", ("against",))):
            for name in names if self.ask != way else ():
                if getattr(self, name) != type(self).model_fields[name].default:
                    found = f"{name} has no effect with ask: {self.ask}"
                    yield Problem("no_effect", name, found, f"Leave it out, or write `ask: {way}`.")

    def score(self, view: View) -> float | None:
        """In [0, 1]; null where the task lacks what is shown, or a reply cannot be read."""
        shown = self._shown
        if not judging.is_shown_everything(view, shown):
            return None
        if not (view.answer or "").strip() and (self.ask == "pairwise" or "answer" in shown):
            return 0.0
        if self.ask == "pairwise":
            return self._compared(view)
        given = judging.texts(view)
        scale = (
            f'End with one line that is exactly "Score: N", N from {self.low:g} to {self.high:g}.'
        )
        prompt = self.template.replace("{scale}", scale) if self.ask == "score" else self.template
        read = self._of_score if self.ask == "score" else partial(judging.verdict, values=YES)
        return ask(self.judge, [filled(prompt, given, longest=self.longest)], read)[0].value

    def _of_score(self, reply: str) -> float | None:
        found = judging.score(reply)
        if found is None or not self.low <= found <= self.high:
            return None
        return (found - self.low) / (self.high - self.low)

    def _compared(self, view: View) -> float | None:
        given = judging.texts(view)
        other = view.task.gold_answers[0] if self.against == "gold" else given[self.against]
        values = []
        for pair, meaning in (
            ((given["answer"], other), FIRST),
            ((other, given["answer"]), SECOND),
        ):
            shown = {**given, "first": pair[0], "second": pair[1]}
            prompt = filled(self.template, shown, longest=self.longest)
            [said] = ask(self.judge, [prompt], partial(judging.verdict, values=meaning))
            values.append(said.value)
        first, second = values
        return None if first is None or second is None else (first + second) / 2
