"""Random questions for the independent implementations: arrays by seed, and how a spec is drawn.

Every number of an array is a short decimal, so that a stored array is short and exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Spec = dict[str, Any]
Arrays = dict[str, np.ndarray]

LONGEST = 12
SPREAD = 0.4  # of log-ratios: ratios from about 0.4 to 2.5, so that every clip is met
DECIMALS = 5
EIGHTHS = np.arange(-16, 17) / 8  # rewards: exact in float32 too, so that ties are ties in both


def draw_arrays(seed: int) -> Arrays:
    """Two or three groups of ragged rows with observation tokens between, float64.

    Every trajectory is one row of one to three turns. Its turn rewards lie on the turns' last
    action tokens; the trajectories of a group have different totals, but for one group in four.
    """
    random = np.random.default_rng([20261121, seed])
    attempts = int(random.integers(2, 5))
    rows = 2 * attempts * int(random.integers(1, 3))  # even: it can be halved
    mask = random.random((rows, LONGEST)) < 0.7
    mask &= np.arange(LONGEST) < random.integers(1, LONGEST + 1, size=(rows, 1))
    mask[:, 0] = True
    cuts = np.sort(random.integers(0, LONGEST + 1, size=(rows, 2)), axis=1)
    turn_index = (np.arange(LONGEST)[None, :, None] >= cuts[:, None, :]).sum(axis=2)

    def normal(scale: float, shape: Any = mask.shape) -> np.ndarray:
        return np.round(scale * random.normal(size=shape), DECIMALS)

    logp_old = np.round(-1.0 + normal(0.5), DECIMALS)
    return {
        "action_mask": mask,
        "logp": np.round(logp_old + normal(SPREAD), DECIMALS),
        "logp_old": logp_old,
        "logp_ref": np.round(logp_old + normal(SPREAD), DECIMALS),
        "logp_rollout": np.round(logp_old + normal(SPREAD), DECIMALS),
        "values": normal(1.0),
        "values_old": normal(1.0),
        "entropy": np.abs(normal(1.0)),
        "turn_index": np.where(mask, turn_index, 0),
        "turn_rewards": _turn_rewards(random, mask, turn_index, attempts),
        "group": np.repeat(np.arange(rows // attempts), attempts),
    }


def _turn_rewards(
    random: np.random.Generator, mask: np.ndarray, turn_index: np.ndarray, attempts: int
) -> np.ndarray:
    """(B, 3) 0 where a turn has no token; within a group all totals differ, or none."""
    taken = np.stack([(mask & (turn_index == turn)).any(axis=1) for turn in range(3)], axis=1)
    rewards = np.where(taken, random.choice(EIGHTHS, size=taken.shape), 0.0)
    last = 2 - taken[:, ::-1].argmax(axis=1)
    for start in range(0, len(mask), attempts):
        own = np.arange(start, start + attempts)
        totals = random.choice(EIGHTHS[::4], size=attempts, replace=False)
        if start and random.random() < 0.25:
            totals[:] = totals[0]
        rewards[own, last[own]] += totals - rewards[own].sum(axis=1)
    return rewards


def last_tokens(arrays: Arrays) -> np.ndarray:
    """(B, T) each turn's reward on its last action token, 0 elsewhere."""
    mask, turns = arrays["action_mask"], arrays["turn_index"]
    result = np.zeros(mask.shape)
    for row, rewards in enumerate(arrays["turn_rewards"]):
        for turn, reward in enumerate(rewards):
            places = np.flatnonzero(mask[row] & (turns[row] == turn))
            if len(places):
                result[row, places[-1]] = reward
    return result


def draw_split(random: np.random.Generator, rows: int) -> list[list[int]]:
    """One to three micro-batches of all rows, none of them empty."""
    order = random.permutation(rows)
    parts = np.array_split(order, int(random.integers(1, 4)))
    return [sorted(part.tolist()) for part in parts if len(part)]


def a_few(random: np.random.Generator, **choices: list[Any]) -> Spec:
    """One of each list; what is None is left out, as a recipe would."""
    drawn = {name: values[int(random.integers(len(values)))] for name, values in choices.items()}
    return {name: value for name, value in drawn.items() if value is not None}


CLIPS: dict[str, list[Any]] = {"clip_low": [0.1, 0.2, 0.35], "clip_high": [0.1, 0.28, 0.5]}
MEANS: list[Any] = ["token_mean", "sequence_mean", "sequence_sum_norm"]


def with_constant(spec: Spec) -> Spec:
    """`spec`, with a constant where its aggregation wants one."""
    wanted = spec.get("aggregation") == "sequence_sum_norm" or (
        spec["name"] == "dr_grpo" and "aggregation" not in spec
    )
    return {**spec, "max_tokens": 9} if wanted else spec


def kl_terms(places: tuple[str, ...], estimators: tuple[str, ...]) -> list[Any]:
    """No KL term, or one of each of these."""
    return [None, None] + [
        {"place": place, "estimator": estimator, "coefficient": 0.05}
        for place in places
        for estimator in estimators
    ]


IMPORTANCE: list[Any] = [
    None,
    {"cap": 2.0, "level": "token"},
    {"cap": 1.2, "level": "token"},
    {"cap": 1.5, "level": "sequence"},
]
