"""Views → numbers: what each reward part gives, and what that adds up to.

Rewards are plain functions. Where one of them asks a judge, trajectories are scored side by side in
threads that mostly wait, as many as the judge takes; the results stand in the order of the
trajectories all the same.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from agentrecipes.errors import RunStopped
from agentrecipes.judges.occasion import Occasion, opened
from agentrecipes.recipe.rules import parts_in
from agentrecipes.recipe.schema import RewardEntry, Stage
from agentrecipes.records import Judgement, Scored, Trajectory
from agentrecipes.rewards.algebra import Value, computed, whole
from agentrecipes.rewards.protocol import View, most_tokens
from agentrecipes.rollout.transcripts import read_transcripts

__all__ = ["Scores", "read_transcripts", "score", "score_in", "score_view", "score_views"]

Found = tuple[Value | None, str]


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
    judgements: tuple[Judgement, ...] = ()  # what judges replied


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
    scored, weights = [], {entry.label: entry.weight for entry in rewards}
    most = None if stage is None else most_tokens(stage)
    scores = score_views([View.of(trajectory, most) for trajectory in trajectories], rewards)
    for trajectory, found in zip(trajectories, scores, strict=True):
        if problems is not None:
            problems.update(found.problems)
        scored.append(
            Scored(
                trajectory=trajectory,
                parts=found.parts,
                total=found.total,
                per_turn=found.per_turn,
                masked=found.masked,
                judgements=found.judgements,
                weights=weights,
            )
        )
    return scored


def score_in(stage: Stage, views: Sequence[View]) -> list[Scores]:
    """What a stage's rewards say of views."""
    most = most_tokens(stage)
    return score_views([replace(view, most_tokens=most) for view in views], stage.rewards)


def score_views(views: Sequence[View], rewards: Sequence[RewardEntry]) -> list[Scores]:
    """The scores of every view, in order; side by side where judges are asked.

    Raises:
        RunStopped: a part with ``missing: stop`` could not be computed.
    """
    workers = min(_asked_at_once(rewards), len(views))
    if workers < 2:
        return [score_view(view, rewards) for view in views]
    pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="score")
    try:
        return list(pool.map(lambda view: score_view(view, rewards), views))
    finally:
        pool.shutdown(cancel_futures=True)  # what has not begun when one of them raises


def _asked_at_once(rewards: Sequence[RewardEntry]) -> int:
    """How many trajectories wait for judges side by side; 0 without a judge."""
    judges = (part for _, part in parts_in(list(rewards)) if part.kind == "judge")
    return max((int(getattr(judge, "asks_at_once", 1)) for judge in judges), default=0)


def score_view(view: View, rewards: Sequence[RewardEntry]) -> Scores:
    """Parts by label, before their weights; the weighted sum by turn and in total.

    A list counts turn by turn, a single number on the last turn, and with ``scope: trajectory`` the
    sum of a list too. What is NaN, out of the part's declared range, or not as long as the turns is
    a null with a problem, never a zero.

    Raises:
        RunStopped: a part with ``missing: stop`` could not be computed.
    """
    turns, sums = len(view.actions), _Sums(per_turn=[0.0] * len(view.actions))
    for entry in rewards:
        value, problem = _found(view, entry, sums)
        if value is None:
            sums.problems.append(problem)
            sums.missing.add(entry.missing)
            sums.parts[entry.label] = None
            if entry.missing == "stop":
                raise RunStopped(
                    f"task {view.task.id!r}: {problem}, and the recipe says missing: stop."
                )
            continue
        if isinstance(value, list) and not _summed(entry):
            listed = value
        else:
            listed = [0.0] * (turns - 1) + [whole(value)] * (turns > 0)
        sums.add(entry, whole(value), listed)
    return sums.scores()


@dataclass(slots=True)
class _Sums:
    """What has been added up of one view."""

    per_turn: list[float]
    parts: dict[str, float | None] = field(default_factory=dict)
    total: float = 0.0
    problems: list[str] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)
    judgements: list[Judgement] = field(default_factory=list)

    def add(self, entry: RewardEntry, value: float, listed: Sequence[float]) -> None:
        """One part's value, and what of it counts on each turn."""
        self.parts[entry.label] = value
        self.total += entry.weight * value
        pairs = zip(self.per_turn, listed, strict=True)
        self.per_turn = [sum_ + entry.weight * own for sum_, own in pairs]

    def scores(self) -> Scores:
        """The sums as they stand; nulls decide what becomes of the trajectory."""
        told = (tuple(self.problems), tuple(self.judgements))
        if self.missing:
            masked = "drop" not in self.missing
            return Scores(self.parts, (), None, told[0], masked, told[1])
        return Scores(self.parts, tuple(self.per_turn), self.total, told[0], False, told[1])


def _found(view: View, entry: RewardEntry, sums: _Sums) -> Found:
    """The part's value or why it has none, on an occasion of its own."""
    limit = entry.timeout_seconds
    cache = Path(entry.cache) if entry.cache is not None else None
    deadline = time.monotonic() + (float("inf") if limit is None else limit)
    with opened(Occasion(entry.label, cache=cache, deadline=deadline)) as occasion:
        if limit is None:
            value, problem = computed(entry.part, view, entry.label)
        else:
            value, problem = _in_time(lambda: computed(entry.part, view, entry.label), limit, entry)
        sums.judgements += list(occasion.heard)
        if value is None and occasion.problem:
            problem = f"{problem}: {occasion.problem}"
        return value, problem


def _in_time(compute: Callable[[], Found], limit: float, entry: RewardEntry) -> Found:
    """What `compute` gives within `limit` seconds; its thread is left alone after that."""
    late: Found = (None, f"{entry.label} took longer than {limit:g} seconds")
    found, failed, context = [late], [], contextvars.copy_context()

    def work() -> None:
        try:
            found.append(context.run(compute))
        except BaseException as error:  # raised again where the reward was asked for
            failed.append(error)

    thread = threading.Thread(target=work, name=f"reward {entry.label}", daemon=True)
    thread.start()
    thread.join(limit)
    if failed:
        raise failed[0]
    return found[-1]


def _summed(entry: RewardEntry) -> bool:
    """Whether a list counts as its sum: the recipe says so of a part that declares its lists."""
    return entry.scope == "trajectory" and getattr(entry.part, "gives", None) == "turn"
