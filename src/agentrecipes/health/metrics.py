"""Figures of scored trajectories: what is logged each iteration, what an evaluation says."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from agentrecipes.records import EvaluationRow, Place, Scored, Stop, Trajectory

SOLVED = 1.0  # a metric from here on counts as solved in pass@k


def rollout_metrics(scored: Sequence[Scored]) -> dict[str, float]:
    """``rollout/*`` and ``reward/*`` of one iteration; empty for no trajectories.

    Shares lie in [0, 1]. A figure that does not exist here (a share of no turns, a mean of nulls
    alone) is left out; ``reward/<part>_null`` counts what could not be computed.
    """
    if not scored:
        return {}
    trajectories = [one.trajectory for one in scored]
    return {
        **_shape(trajectories),
        **{
            f"rollout/stop_{stop}": _mean(one.stop is stop for one in trajectories) for stop in Stop
        },
        **call_outcomes(trajectories),
        **degenerate_groups(scored),
        **reward_metrics(scored),
        **judge_metrics(scored),
    }


def _shape(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    turns = [turn for one in trajectories for turn in one.turns]
    policy = sum(one.policy_tokens for one in trajectories)
    observed = sum(one.observation_tokens for one in trajectories)
    figures = {
        "rollout/turns_mean": _mean(len(one.turns) for one in trajectories),
        "rollout/policy_tokens_mean": policy / len(trajectories),
        "rollout/answered_share": _mean(one.answer is not None for one in trajectories),
        "rollout/calls_mean": _mean(calls(one) for one in trajectories),
        "rollout/searches_mean": _mean(calls(one, tool="search") for one in trajectories),
    }
    if any(one.taken_turns for one in trajectories):
        taken = [turn for one in trajectories for turn in one.turns[: one.taken_turns]]
        figures["rollout/branched_share"] = _mean(one.taken_turns > 0 for one in trajectories)
        figures["rollout/taken_share"] = sum(len(turn.action) for turn in taken) / policy
    if turns:
        figures["rollout/valid_share"] = _mean(turn.valid for turn in turns)
    if policy + observed:
        figures["rollout/observation_share"] = observed / (policy + observed)
    return figures


def calls(trajectory: Trajectory, tool: str | None = None) -> int:
    """How often a trajectory called `tool`, or any tool at all."""
    return sum(tool in (None, call.tool) for turn in trajectory.turns for call in turn.calls)


def call_outcomes(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """``tools/<outcome>``: how many calls became what; nothing where no environment says it."""
    turns = [turn for one in trajectories for turn in one.turns]
    counts = Counter(outcome for turn in turns for outcome in turn.outcomes)
    return {f"tools/{outcome}": float(count) for outcome, count in sorted(counts.items())}


def degenerate_groups(scored: Sequence[Scored]) -> dict[str, float]:
    """The share of groups that teach a group algorithm nothing: fewer than two different totals.

    Groups of one attempt do not count; nothing where there are no others.
    """
    groups: dict[str, list[float | None]] = {}
    for one in scored:
        groups.setdefault(one.trajectory.group, []).append(one.total)
    several = [totals for totals in groups.values() if len(totals) > 1]
    if not several:
        return {}
    flat = [len({total for total in totals if total is not None}) < 2 for totals in several]
    return {"rollout/degenerate_groups_share": _mean(flat)}


def reward_metrics(scored: Sequence[Scored]) -> dict[str, float]:
    """Means over the finite values of trajectories, and the number of those that have none.

    ``reward/total_not_finite`` counts totals that are there and no numbers: they train nothing.
    """
    names = dict.fromkeys(name for one in scored for name in one.parts)
    columns = {name: [one.parts.get(name) for one in scored] for name in names}
    columns["total"] = [one.total for one in scored]
    figures: dict[str, float] = {}
    for name, values in columns.items():
        known = [value for value in values if value is not None]
        finite = [value for value in known if math.isfinite(value)]
        if finite:
            figures[f"reward/{name}"] = _mean(finite)
        figures[f"reward/{name}_null"] = float(len(values) - len(known))
        if name == "total":
            figures["reward/total_not_finite"] = float(len(known) - len(finite))
    return figures


def judge_metrics(scored: Sequence[Scored]) -> dict[str, float]:
    """``judge/*``: replies, those from the cache, those that could not be read, failures.

    Empty where no judge was asked.
    """
    said = [each for one in scored for each in one.judgements]
    if not said:
        return {}
    return {
        "judge/asked": float(len(said)),
        "judge/cached": float(sum(each.cached for each in said)),
        "judge/failed": float(sum(each.reply is None for each in said)),
        "judge/unreadable": float(
            sum(each.reply is not None and bool(each.problem) for each in said)
        ),
    }


def evaluation_rows(
    scored: Sequence[Scored], metrics: Iterable[str], place: Place
) -> list[EvaluationRow]:
    """One row per metric, and with several attempts a task a row per ``<metric>/pass@k``.

    `metrics` are names of parts. Attempts are averaged within their task first, so that the
    standard error is over tasks; a null is left out and shows in the row's number of tasks.
    """
    return [row for name in metrics for row in _metric_rows(scored, name, place)]


def _metric_rows(scored: Sequence[Scored], name: str, place: Place) -> list[EvaluationRow]:
    known = [(one.trajectory, one.parts.get(name)) for one in scored]
    ordered = sorted(known, key=lambda pair: pair[0].group)
    tasks = [
        (group[0][0].task.type, [value for _, value in group if value is not None])
        for group in (list(pairs) for _, pairs in groupby(ordered, key=lambda pair: pair[0].group))
    ]
    answered = [(kind, values) for kind, values in tasks if values]
    rounds = _mean(rounds_of(one.trajectory) for one in scored) if scored else 0.0
    means = [(kind, math.fsum(values) / len(values)) for kind, values in answered]
    rows = [_row(name, place, means, rounds=rounds)]
    for k in _ks(max((len(values) for _, values in answered), default=0)):
        passed = [(kind, pass_at(k, values)) for kind, values in answered if len(values) >= k]
        rows.append(_row(f"{name}/pass@{k}", place, passed, rounds=rounds))
    return rows


def _row(
    name: str, place: Place, values: Sequence[tuple[str, float]], *, rounds: float
) -> EvaluationRow:
    figures = [value for _, value in values]
    kinds = sorted({kind for kind, _ in values if kind})
    return EvaluationRow(
        stage=place.stage,
        iteration=place.iteration,
        split=place.split,
        mode=place.mode,
        metric=name,
        value=_mean(figures) if figures else None,
        tasks=len(figures),
        standard_error=standard_error(figures),
        by={kind: _mean(value for one, value in values if one == kind) for kind in kinds},
        rounds_mean=rounds,
    )


def rounds_of(trajectory: Trajectory) -> int:
    """The number of turns in which the policy called a tool."""
    return sum(bool(turn.calls) for turn in trajectory.turns)


def standard_error(values: Sequence[float]) -> float | None:
    """Of the mean: sample standard deviation (n - 1) over √n; None for fewer than two values."""
    if len(values) < 2:
        return None
    mean = _mean(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    return math.sqrt(squares / (len(values) - 1) / len(values))


def pass_at(k: int, values: Sequence[float]) -> float:
    """1 - C(n - c, k) / C(n, k): the chance that k of the n attempts hold one of the c solved ones.

    Chen et al. 2021, https://arxiv.org/abs/2107.03374, eq. 1; a metric of at least 1 counts as
    solved.
    """
    solved = sum(value >= SOLVED for value in values)
    return 1.0 - math.comb(len(values) - solved, k) / math.comb(len(values), k)


def _ks(attempts: int) -> list[int]:
    """Powers of two above one and below `attempts`, and `attempts` itself."""
    if attempts < 2:
        return []
    powers = (2**power for power in range(1, attempts.bit_length()))
    return [*(k for k in powers if k < attempts), attempts]


def _mean(values: Iterable[float]) -> float:
    figures = list(values)
    return math.fsum(figures) / len(figures)


def flat_metrics(rows: Iterable[EvaluationRow]) -> Mapping[str, float]:
    """Evaluation rows as metrics: ``eval/<split>/<mode>/<metric>``, nulls left out."""
    return {
        f"eval/{row.split}/{row.mode}/{row.metric}": row.value
        for row in rows
        if row.value is not None
    }
