"""Advantages, value targets and losses of every algorithm, as loops over tokens."""

from __future__ import annotations

import math

from algorithms.loops import (
    Attempt,
    by_group,
    divergence,
    gae,
    kind_of,
    mean,
    on_tokens,
    penalties,
    rewards,
    step_rewards,
    steps,
    to_go,
    whitened,
)
from algorithms.tape import Number, exp, log

Nested = list[list[float]]  # [trajectory][token]


def everywhere(all_of: list[Attempt], values: list[float]) -> Nested:
    return [[value] * len(one.tokens) for one, value in zip(all_of, values, strict=True)]


def totals(part, all_of, beta) -> list[float]:
    return [one.total - sum(penalties(part, one, beta)) for one in all_of]


def groups(all_of) -> list[int]:
    return [one.group for one in all_of]


def group_relative(part, all_of, beta) -> Nested:
    values = totals(part, all_of, beta)
    return everywhere(all_of, by_group(values, groups(all_of), part.std, part.epsilon))


def rloo(part, all_of, beta) -> Nested:
    values = totals(part, all_of, beta)
    result = []
    for n, one in enumerate(all_of):
        others = [values[m] for m, o in enumerate(all_of) if o.group == one.group and m != n]
        result.append(values[n] - mean(others))
    return everywhere(all_of, result)


def reward_to_go(part, all_of, beta) -> Nested:
    result = [to_go(rewards(part, one, beta), part.gamma) for one in all_of]
    return whitened(result) if part.whiten else result


def baseline(part, all_of, beta) -> Nested:
    given = totals(part, all_of, beta)
    result = everywhere(all_of, by_group(given, groups(all_of), "none"))
    if part.whiten:
        result = whitened(result)
    ties = [len({given[m] for m, o in enumerate(all_of) if o.group == one.group}) for one in all_of]
    return [[0.0] * len(row) if n == 1 else row for row, n in zip(result, ties, strict=True)]


def ppo_raw(part, all_of, beta) -> Nested:
    return [
        gae(rewards(part, one, beta), [t.value_old for t in one.tokens], part.gamma, part.lam)
        for one in all_of
    ]


def ppo(part, all_of, beta) -> Nested:
    result = ppo_raw(part, all_of, beta)
    return whitened(result) if part.whiten else result


def step_raw(part, all_of, beta) -> Nested:
    result = []
    for one in all_of:
        values = [one.tokens[places[0]].value_old for places in steps(one)]
        result.append(gae(step_rewards(part, one, beta), values, part.gamma, part.lam))
    return result


def step_ppo(part, all_of, beta) -> Nested:
    result = step_raw(part, all_of, beta)
    by_step = whitened(result) if part.whiten else result
    return [on_tokens(one, values) for one, values in zip(all_of, by_step, strict=True)]


def turn_grpo(part, all_of, beta) -> Nested:
    given = [step_rewards(part, one, beta) for one in all_of]
    relative = [[0.0] * len(one) for one in given]
    for turn in range(max(len(one) for one in given)):
        going_on = [n for n, one in enumerate(given) if len(one) - 1 > turn]
        values = by_group(
            [given[n][turn] for n in going_on],
            [all_of[n].group for n in going_on],
            part.std,
            part.epsilon,
        )
        for n, value in zip(going_on, values, strict=True):
            relative[n][turn] = value
    outcome = by_group([one[-1] for one in given], groups(all_of), part.std, part.epsilon)
    for one, value in zip(relative, outcome, strict=True):
        one[-1] = value
    return [on_tokens(one, to_go(r, part.gamma)) for one, r in zip(all_of, relative, strict=True)]


def gigpo(part, all_of, beta) -> Nested:
    returns = [to_go(step_rewards(part, one, beta), part.gamma) for one in all_of]
    flat = [x for one in returns for x in one]
    keys = [
        (one.group, one.states[one.tokens[places[0]].turn])
        for one in all_of
        for places in steps(one)
    ]
    relative = iter(by_group(flat, keys, part.std, part.epsilon))
    by_step = [[next(relative) for _ in one] for one in returns]
    whole = group_relative(part, all_of, beta)
    turn = [on_tokens(one, values) for one, values in zip(all_of, by_step, strict=True)]
    return [
        [w + part.step_weight * t for w, t in zip(ws, ts, strict=True)]
        for ws, ts in zip(whole, turn, strict=True)
    ]


def successes(part, all_of, beta) -> Nested:
    good = [one.total >= part.at_least for one in all_of]
    tokens = [len(one.tokens) for one in all_of]
    kept = sum(n for n, mine in zip(tokens, good, strict=True) if mine)
    return everywhere(all_of, [sum(tokens) / kept if mine else 0.0 for mine in good])


def pairs(all_of) -> list[tuple[int, int]]:
    """(best, worst) of each group whose returns differ."""
    found = []
    for group in dict.fromkeys(groups(all_of)):
        own = [(one.total, -n) for n, one in enumerate(all_of) if one.group == group]
        best, worst = max(own), min((total, -n) for total, n in own)
        if worst[0] < best[0]:
            found.append((-best[1], worst[1]))
    return found


def preferred(part, all_of, beta) -> Nested:
    found, values = pairs(all_of), [0.0] * len(all_of)
    for best, worst in found:
        values[best], values[worst] = len(all_of) / len(found), -len(all_of) / len(found)
    return everywhere(all_of, values)


ADVANTAGES = {
    "rft": successes,
    "dpo": preferred,
    **dict.fromkeys(("grpo", "dapo", "dr_grpo", "gspo", "cispo", "sapo"), group_relative),
    **dict.fromkeys(("reinforce", "reinforce_pp"), reward_to_go),
    **dict.fromkeys(("step_ppo", "vl_dac"), step_ppo),
    "rloo": rloo,
    "reinforce_pp_baseline": baseline,
    "ppo": ppo,
    "turn_grpo": turn_grpo,
    "gigpo": gigpo,
}


def bounded(x: Number | float, low: float | None, high: float | None) -> Number | float:
    x = x if low is None else max(x, low)
    return x if high is None else min(x, high)


def clip(part, ratio: Number | float) -> Number | float:
    low = None if part.clip_low is None else 1 - part.clip_low
    return bounded(ratio, low, None if part.clip_high is None else 1 + part.clip_high)


def clipped(part, ratio: Number, advantage: float) -> Number | float:
    value = min(ratio * advantage, clip(part, ratio) * advantage)
    if advantage < 0 and part.dual_clip is not None:
        return max(value, part.dual_clip * advantage)
    return value


def objective(part, one: Attempt, n: int, advantage: float) -> Number | float:
    """What is maximised at token n, before aggregation."""
    token = one.tokens[n]
    ratio = exp(token.logp - token.old)
    name = part.part_name
    if name == "reinforce":
        return advantage * token.logp
    if name == "cispo":
        return clip(part, float(ratio)) * advantage * token.logp
    if name == "sapo":
        tau = part.tau_positive if advantage > 0 else part.tau_negative
        return 4 / tau / (1 + exp(-tau * (ratio - 1))) * advantage
    if name == "gspo":
        ratio = exp(mean([t.logp - t.old for t in one.tokens]))
    return clipped(part, ratio, advantage)


def weight(part, one: Attempt, n: int) -> float:
    if part.importance is None:
        return 1.0
    gaps = [t.old - t.rollout for t in one.tokens]
    gap = sum(gaps) if part.importance.level == "sequence" else gaps[n]
    return min(math.exp(gap), part.importance.cap)


def aggregate(part, values: list) -> Number | float:
    if part.aggregation == "token_mean":
        return mean([x for one in values for x in one])
    if part.aggregation == "sequence_mean":
        return mean([mean(one) for one in values])
    return mean([sum(one) / (part.max_tokens or 2048) for one in values])


def square(x):
    return x * x


def value_loss(part, all_of, beta) -> Number:
    by_step = part.part_name in ("step_ppo", "vl_dac")
    raw = (step_raw if by_step else ppo_raw)(part, all_of, beta)
    errors = []
    for one, estimates in zip(all_of, raw, strict=True):
        tokens = [one.tokens[p[0]] for p in steps(one)] if by_step else one.tokens
        for token, estimate in zip(tokens, estimates, strict=True):
            target = token.value_old + estimate
            error = square(token.value - target)
            if part.value_clip is not None:
                low, high = token.value_old - part.value_clip, token.value_old + part.value_clip
                error = max(error, square(bounded(token.value, low, high) - target))
            errors.append(error / 2)
    return mean(errors)


def imitation_loss(part, all_of) -> Number | float:
    tokens = [t.logp for one in all_of if one.total >= part.at_least for t in one.tokens]
    return -mean(tokens) if tokens else 0.0


def preference_loss(part, all_of) -> Number | float:
    moved = [sum(t.logp - t.ref for t in one.tokens) for one in all_of]
    chances = [1 / (1 + exp(-part.beta * (moved[a] - moved[b]))) for a, b in pairs(all_of)]
    return -mean([log(chance) for chance in chances]) if chances else 0.0


def imitated(batch, outputs) -> tuple[float, list[list[float]]]:
    """sft: −Σ w·log π / Σ w, and its slope by each token."""
    weights = batch.token_weight.tolist()
    whole = sum(sum(row) for row in weights)
    rows = zip(weights, outputs.logp.tolist(), strict=True)
    total = sum(w * logp for row, logps in rows for w, logp in zip(row, logps, strict=True))
    return -total / whole, [[-w / whole for w in row] for row in weights]


OWN_LOSSES = {"rft": imitation_loss, "dpo": preference_loss}


def loss(part, all_of: list[Attempt], advantages: Nested, beta: float) -> Number | float:
    """The whole loss of one optimizer step."""
    if part.part_name in OWN_LOSSES:
        return OWN_LOSSES[part.part_name](part, all_of)
    gains = [
        [objective(part, one, n, a) * weight(part, one, n) for n, a in enumerate(row)]
        for one, row in zip(all_of, advantages, strict=True)
    ]
    total = -aggregate(part, gains)
    if part.kl.place == "loss":
        kind = kind_of(part.kl)
        terms = [[divergence(kind, t.logp - t.ref) for t in one.tokens] for one in all_of]
        total += beta * aggregate(part, terms)
    if part.entropy:
        total -= part.entropy * aggregate(part, [[t.entropy for t in o.tokens] for o in all_of])
    if part.needs.value:
        total += part.value_coefficient * value_loss(part, all_of, beta)
    return total
