"""Plays small worlds as well as they can be played, by what their makers know about them."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

Transitions = Mapping[int, Mapping[int, Sequence[tuple[float, int, float, bool]]]]
"""State → action → (probability, next state, reward, over): the table ``P`` of tabular worlds."""

DISCOUNT = 0.99  # of planning: the shorter of two ways is the better one
ROUNDS = 500  # most sweeps over all states
CLOSE = 1e-9
HORIZON = 12  # actions that are looked ahead where there is no table
WIDTH = 64  # different positions kept at each of them


def planned(transitions: Transitions) -> dict[int, int]:
    """The best action of each state, by value iteration (Bellman 1957)."""
    values = dict.fromkeys(transitions, 0.0)
    for _ in range(ROUNDS):
        better = {
            s: max(_gain(row, values) for row in acts.values()) for s, acts in transitions.items()
        }
        change = max(abs(better[s] - values[s]) for s in values)
        values = better
        if change < CLOSE:
            break
    return {
        state: max(actions, key=lambda action: _gain(actions[action], values))
        for state, actions in transitions.items()
    }


def _gain(row: Sequence[tuple[float, int, float, bool]], values: Mapping[int, float]) -> float:
    return sum(
        chance * (reward + (0.0 if over else DISCOUNT * values[after]))
        for chance, after, reward, over in row
    )


def foreseen(world: Any, actions: Sequence[int]) -> list[int]:
    """The actions that return most from here, tried on copies that draw the same chances.

    A perfect oracle of a world without a table: it knows the cards that are still to come.
    """
    best: tuple[float, list[int]] = (float("-inf"), [actions[0]])
    ahead: list[tuple[float, list[int], Any]] = [(0.0, [], world)]
    for _ in range(HORIZON):
        found: dict[str, tuple[float, list[int], Any]] = {}
        for total, done, place in ahead:
            for action in actions:
                tried = copy.deepcopy(place)
                seen, reward, over, cut, _ = tried.step(action)
                gained, way = total + float(reward), [*done, action]
                if (over or cut) and gained > best[0]:
                    best = (gained, way)
                elif not (over or cut) and gained > found.get(repr(seen), (float("-inf"),))[0]:
                    found[repr(seen)] = (gained, way, tried)
        ahead = sorted(found.values(), key=lambda entry: -entry[0])[:WIDTH]
    return best[1]
