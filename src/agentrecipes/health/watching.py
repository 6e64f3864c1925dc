"""Rules about a stage while it collects, as pure functions of what each iteration left.

An entry of the history is ``{"iteration": 7, "total": 0.4, "distinct": 3, "null": 0.0, …}`` with
the means of the reward's parts under ``part/<label>``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from agentrecipes.health.tripwires import Verdict
from agentrecipes.recipe.schema import Collapse, ConstantReward, Gaming, Tripwires
from agentrecipes.records import Scored

Entry = Mapping[str, float]
NAMES = {
    "valid": "rollout/valid_share",
    "length": "rollout/policy_tokens_mean",
    "kl": "loss/kl",
}
GO = Verdict("go", "", {})


def watched(
    iteration: int, scored: Sequence[Scored], values: Mapping[str, float]
) -> dict[str, float]:
    """What the rules look at, of the iteration that led to `iteration`.

    ``distinct`` counts different totals that are numbers; ``null`` is the share that is none;
    ``entropy`` is the mean of -log p over the sampled tokens, in nats.
    """
    totals = [one.total for one in scored if one.total is not None and math.isfinite(one.total)]
    entry = {"iteration": float(iteration), "distinct": float(len(set(totals)))}
    if scored:
        entry["null"] = 1.0 - len(totals) / len(scored)
    if totals:
        entry["total"] = math.fsum(totals) / len(totals)
    turns = [turn for one in scored for turn in one.trajectory.turns]
    tokens = sum(len(turn.logp_rollout) for turn in turns)
    if tokens:
        entry["entropy"] = -math.fsum(logp for turn in turns for logp in turn.logp_rollout) / tokens
    for name, own in NAMES.items():
        if own in values:
            entry[name] = values[own]
    labels = dict.fromkeys(label for one in scored for label in one.parts)
    for label in labels:
        if f"reward/{label}" in values:
            entry[f"part/{label}"] = values[f"reward/{label}"]
        if values.get(f"reward/{label}_null") == len(scored):
            entry[f"gone/{label}"] = 1.0
    return entry


def held_out(evaluations: Sequence[Mapping[str, Any]], stage: str) -> list[tuple[int, float]]:
    """(iteration, score) of a stage's evaluations: of the sampled policy, by the first metric."""
    rows = [row for row in evaluations if row["stage"] == stage and row["value"] is not None]
    modes = {row["mode"] for row in rows}
    mode = "sampled" if "sampled" in modes else next(iter(modes), None)
    found: dict[int, float] = {}
    for row in rows:
        if row["mode"] == mode:
            found.setdefault(row["iteration"], row["value"])
    return sorted(found.items())


def verdicts(
    rules: Tripwires, history: Sequence[Entry], measured: Sequence[tuple[int, float]]
) -> Iterator[Verdict]:
    """What the rules that are on say now; those that have nothing to say are left out."""
    asked = (
        constant_reward(rules.constant_reward, history) if rules.constant_reward else GO,
        gaming(rules.gaming, history, measured) if rules.gaming else GO,
        collapse(rules.collapse, history) if rules.collapse else GO,
    )
    return (verdict for verdict in asked if verdict.action != "go")


def constant_reward(rule: ConstantReward, history: Sequence[Entry]) -> Verdict:
    """Whether all totals have been alike, or null, for some iterations."""
    recent = history[-rule.iterations :]
    if len(recent) < rule.iterations or any(entry["distinct"] > 1 for entry in recent):
        return GO
    before = [entry["total"] for entry in history[: -rule.iterations] if "total" in entry]
    last, nulls = recent[-1], min(entry.get("null", 0.0) for entry in recent)
    value = last.get("total")
    if nulls == 0 and value is not None and before and value > max(before):
        return GO  # solved: alike at the best that there was
    gone = sorted(key.removeprefix("gone/") for key in last if key.startswith("gone/"))
    shown = (
        f"{', '.join(gone)} could not be computed for any"
        if gone
        else (f"all totals are {value:g}" if value is not None else "no total could be computed")
    )
    message = (
        f"tripwires.constant_reward: for {rule.iterations} iterations {shown}: nothing can be "
        "learned, and a judge, a tool or a data field may have failed. Look at the table "
        "`judgements` and at `reward/*_null`."
    )
    evidence = {"iterations": float(rule.iterations), "null_share": nulls}
    if value is not None:
        evidence["total"] = value
    return Verdict(rule.action, message, evidence)


def gaming(
    rule: Gaming, history: Sequence[Entry], measured: Sequence[tuple[int, float]]
) -> Verdict:
    """Whether a reward has risen over evaluations in which the held-out score fell."""
    recent = measured[-rule.evaluations :]
    scores = [score for _, score in recent]
    falls = all(later < earlier for earlier, later in pairwise(scores))
    if len(recent) < rule.evaluations or not falls or scores[0] - scores[-1] < rule.fall:
        return GO
    spans = [(recent[place][0], recent[place + 1][0]) for place in range(len(recent) - 1)]
    labels = dict.fromkeys(key for entry in history for key in entry if key.startswith("part/"))
    risen = {}
    for label in labels:
        means = [_between(history, label, span) for span in (spans[0], spans[-1])]
        if len(spans) == 1:  # of one span its halves are compared
            middle = (spans[0][0] + spans[0][1]) // 2
            halves = ((spans[0][0], middle), (middle, spans[0][1]))
            means = [_between(history, label, half) for half in halves]
        first, last = means
        if first is not None and last is not None and last - first >= rule.rise:
            risen[label.removeprefix("part/")] = last - first
    if not risen:
        return GO
    listed = ", ".join(f"{name} by {by:.3g}" for name, by in sorted(risen.items()))
    message = (
        f"tripwires.gaming: over {rule.evaluations} evaluations the held-out score fell from "
        f"{scores[0]:.3f} to {scores[-1]:.3f} while these rewards rose: {listed}. Read the "
        "trajectories that they like best."
    )
    fell = {"score_first": scores[0], "score_last": scores[-1]}
    return Verdict(rule.action, message, {**fell, **{f"rise/{k}": v for k, v in risen.items()}})


def _between(history: Sequence[Entry], key: str, span: tuple[int, int]) -> float | None:
    """The mean after `span`'s first iteration and up to its last; None without a value."""
    return _mean([e[key] for e in history if key in e and span[0] < e["iteration"] <= span[1]])


def collapse(rule: Collapse, history: Sequence[Entry]) -> Verdict:
    """Whether a figure, averaged over the window, left what it was."""
    lost: dict[str, float] = {}
    for name, limit in (("valid", rule.valid), ("total", rule.reward)):
        means = _windows(history, name, rule.window)
        if limit is not None and len(means) > rule.window and max(means) > 0:
            lost |= _fallen(name, means[-1], limit * max(means))
    for name, limit in (("entropy", rule.entropy), ("length", _inverse(rule.length))):
        means = _windows(history, name, rule.window)
        if limit is not None and len(means) > rule.window:
            lost |= _fallen(name, means[-1], limit * means[0])
    for name, most in (("kl", rule.kl), ("length", rule.length)):
        means = _windows(history, name, rule.window)
        if most is None or not means or (name == "length" and len(means) <= rule.window):
            continue
        ceiling = most * means[0] if name == "length" else most
        if means[-1] > ceiling:
            lost |= {name: means[-1], f"{name}_limit": ceiling}
    if not lost:
        return GO
    names = [name for name in lost if not name.endswith("_limit")]
    listed = ", ".join(
        f"{name} {lost[name]:.3g} (limit {lost[name + '_limit']:.3g})" for name in names
    )
    message = (
        f"tripwires.collapse: over the last {rule.window} iterations {listed}. A lower learning "
        "rate, a KL term, or an earlier checkpoint may help."
    )
    return Verdict(rule.action, message, lost)


def _inverse(limit: float | None) -> float | None:
    return None if limit is None else 1.0 / limit


def _fallen(name: str, value: float, floor: float) -> dict[str, float]:
    return {name: value, f"{name}_limit": floor} if value < floor else {}


def _windows(history: Sequence[Entry], key: str, size: int) -> list[float]:
    """The mean of every `size` iterations in a row that have the figure."""
    values = [entry[key] for entry in history if key in entry]
    return [math.fsum(values[n - size : n]) / size for n in range(size, len(values) + 1)]


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
