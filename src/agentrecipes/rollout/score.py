"""Views → numbers: what each reward part gives, and what that adds up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from agentrecipes.errors import RunStopped
from agentrecipes.recipe.schema import RewardEntry, Stage
from agentrecipes.records import Scored, Trajectory
from agentrecipes.rewards.algebra import computed, whole
from agentrecipes.rewards.protocol import View, most_tokens
from agentrecipes.rollout.transcripts import read_transcripts

__all__ = ["Scores", "read_transcripts", "score", "score_in", "score_view"]


class Scores(NamedTuple):
    """What the rewards say of one view.

    ``total`` is null where a part that could not be computed drops or masks the trajectory; then
    there is nothing by turn either.
    """

    parts: dict[str, float | None]
    per_turn: tuple[float, ...]
    total: float | None
    problems: tuple[str, ...] = ()  # why parts are null, one sentence each
    masked: bool = False  # the trajectory is to be masked, not dropped


def score(
    trajectories: Sequence[Trajectory],
    rewards: Sequence[RewardEntry],
    *,
    stage: Stage | None = None,
    problems: Counter[str] | None = None,
) -> list[Scored]:
    """Every trajectory with its rewards; `problems` counts why parts could not be computed.

    The `stage` says how much the policy could write.

    Raises:
        RunStopped: a part with ``missing: stop`` could not be computed.
    """
    scored = []
    most = None if stage is None else most_tokens(stage)
    for trajectory in trajectories:
        found = score_view(View.of(trajectory, most), rewards)
        if problems is not None:
            problems.update(found.problems)
        scored.append(Scored(trajectory, found.parts, found.total, found.per_turn, found.masked))
    return scored


def score_in(stage: Stage, view: View) -> Scores:
    """What a stage's rewards say of a view."""
    return score_view(replace(view, most_tokens=most_tokens(stage)), stage.rewards)


def score_view(view: View, rewards: Sequence[RewardEntry]) -> Scores:
    """Parts by label, before their weights; the weighted sum by turn and in total.

    A list counts turn by turn, a single number on the last turn, and with ``scope: trajectory`` the
    sum of a list too. What is NaN, out of the part's declared range, or not as long as the turns is
    a null with a problem, never a zero.

    Raises:
        RunStopped: a part with ``missing: stop`` could not be computed.
    """
    turns = len(view.actions)
    parts: dict[str, float | None] = {}
    per_turn = [0.0] * turns
    total, problems, missing = 0.0, [], set()
    for entry in rewards:
        value, problem = computed(entry.part, view, entry.label)
        if value is None:
            problems.append(problem)
            missing.add(entry.missing)
            parts[entry.label] = None
            if entry.missing == "stop":
                raise RunStopped(
                    f"task {view.task.id!r}: {problem}, and the recipe says missing: stop."
                )
            continue
        if isinstance(value, list) and not _summed(entry):
            listed = value
        else:
            listed = [0.0] * (turns - 1) + [whole(value)] * (turns > 0)
        parts[entry.label] = whole(value)
        total += entry.weight * whole(value)
        per_turn = [sum_ + entry.weight * own for sum_, own in zip(per_turn, listed, strict=True)]
    if missing:
        return Scores(parts, (), None, tuple(problems), masked="drop" not in missing)
    return Scores(parts, tuple(per_turn), total, tuple(problems))


def _summed(entry: RewardEntry) -> bool:
    """Whether a list counts as its sum: the recipe says so of a part that declares its lists."""
    return entry.scope == "trajectory" and getattr(entry.part, "gives", None) == "turn"
