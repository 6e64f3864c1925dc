"""The second road: every algorithm as loops over Python floats, written from the papers.

Nothing here is shared with the package except the records. A trajectory is a list of tokens in
their order, over all its rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from algorithms.tape import Number, exp


@dataclass
class Token:
    row: int
    place: int
    turn: int
    logp: Number
    old: float
    ref: float
    rollout: float
    value: Number
    value_old: float
    entropy: float


@dataclass
class Attempt:
    tokens: list[Token]
    group: int
    total: float
    by_turn: list[float]
    states: list[int]


def attempts(batch, outputs) -> list[Attempt]:
    """The batch as lists; every trajectory in it has a token."""
    found = [
        Attempt([], int(batch.group[n]), float(batch.returns[n]), rewards.tolist(), states.tolist())
        for n, (rewards, states) in enumerate(
            zip(batch.turn_rewards, batch.turn_state, strict=True)
        )
    ]
    logp, value, entropy = (x.tolist() for x in (outputs.logp, outputs.value, outputs.entropy))
    known = [x.tolist() for x in (batch.logp_old, batch.logp_ref, batch.logp_rollout)]
    values_old, turn_index = batch.values_old.tolist(), batch.turn_index.tolist()
    trajectory = batch.trajectory.tolist()
    for row, place in batch.action_mask.nonzero().tolist():
        token = Token(
            row,
            place,
            turn_index[row][place],
            Number(logp[row][place]),
            *(x[row][place] for x in known),
            Number(value[row][place]),
            values_old[row][place],
            entropy[row][place],
        )
        found[trajectory[row]].tokens.append(token)
    return found


def mean(values: list) -> Number | float:
    return sum(values) / len(values)


def divergence(kind: str, d: Number | float) -> Number | float:
    if kind == "k3":
        return exp(-d) + d - 1
    return d if kind == "k1" else d * d / 2


def kind_of(kl) -> str:
    return kl.estimator or {"reward": "k1", "loss": "k3"}[kl.place]


def penalties(part, one: Attempt, beta: float) -> list[float]:
    if part.kl.place != "reward":
        return [0.0] * len(one.tokens)
    return [beta * divergence(kind_of(part.kl), t.old - t.ref) for t in one.tokens]


def rewards(part, one: Attempt, beta: float) -> list[float]:
    """By token: a turn's reward is on the last token of that turn or, without one, before it."""
    result = [-x for x in penalties(part, one, beta)]
    for turn, reward in enumerate(one.by_turn):
        before = [n for n, token in enumerate(one.tokens) if token.turn <= turn]
        result[before[-1] if before else 0] += reward
    return result


def standard(values: list[float], mode: str, epsilon: float) -> list[float]:
    """Each value against all of them."""
    if len(set(values)) < 2:
        return [0.0] * len(values)
    middle = mean(values)
    if mode == "none":
        return [v - middle for v in values]
    count = len(values) - (mode == "sample")
    spread = math.sqrt(sum((v - middle) ** 2 for v in values) / count)
    return [(v - middle) / (spread + epsilon) for v in values]


def by_group(values: list[float], keys: list, mode: str, epsilon: float = 1e-6) -> list[float]:
    result = [0.0] * len(values)
    for key in set(keys):
        members = [n for n, other in enumerate(keys) if other == key]
        relative = standard([values[n] for n in members], mode, epsilon)
        for n, value in zip(members, relative, strict=True):
            result[n] = value
    return result


def whitened(nested: list[list[float]]) -> list[list[float]]:
    flat = [x for one in nested for x in one]
    middle = mean(flat)
    variance = sum((x - middle) ** 2 for x in flat) / (len(flat) - 1)
    return [[(x - middle) / math.sqrt(variance + 1e-8) for x in one] for one in nested]


def to_go(rewards: list[float], gamma: float) -> list[float]:
    return [
        sum(gamma ** (later - n) * rewards[later] for later in range(n, len(rewards)))
        for n in range(len(rewards))
    ]


def gae(rewards: list[float], values: list[float], gamma: float, lam: float) -> list[float]:
    after = [*values[1:], 0.0]
    deltas = [r + gamma * v1 - v for r, v, v1 in zip(rewards, values, after, strict=True)]
    return to_go(deltas, gamma * lam)


def steps(one: Attempt) -> list[list[int]]:
    """Places of each turn's tokens, for the turns that have any."""
    turns = sorted({token.turn for token in one.tokens})
    return [[n for n, t in enumerate(one.tokens) if t.turn == turn] for turn in turns]


def step_rewards(part, one: Attempt, beta: float) -> list[float]:
    by_token = rewards(part, one, beta)
    return [sum(by_token[n] for n in places) for places in steps(one)]


def on_tokens(one: Attempt, by_step: list[float]) -> list[float]:
    result = [0.0] * len(one.tokens)
    for places, value in zip(steps(one), by_step, strict=True):
        for n in places:
            result[n] = value
    return result
