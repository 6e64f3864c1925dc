"""Our losses and gradients beside those of the independent implementations, case by case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from agentrecipes.testing import evaluate_algorithm
from oracles.inputs import Arrays, Spec, draw_arrays, draw_split, last_tokens

LIMITS = {"float32": 1e-6, "float64": 1e-7}  # of a loss, and of each number of a gradient
TYPES = {"float32": np.float32, "float64": np.float64}


@dataclass(frozen=True)
class Question:
    """One case: what is asked, on which arrays, and how both sides are cut in micro-batches."""

    seed: int
    spec: Spec
    more: Arrays  # arrays that both sides get beside those of the seed
    ours: list[list[int]]
    theirs: list[list[int]]

    @classmethod
    def draw(cls, oracle: Any, name: str, seed: int) -> Question:
        """Number `seed` of an oracle's questions about an algorithm."""
        key = [seed, *name.encode(), len(oracle.source)]
        random, arrays = np.random.default_rng(key), draw_arrays(seed)
        spec = oracle.draw(name, random)
        splits = [draw_split(random, len(arrays["logp"])) for _ in range(2)]
        if name == "dpo":  # the attempts at a task stand in one micro-batch
            splits[0] = _whole_groups(arrays["group"], splits[0])
        return cls(seed, spec, oracle.given(spec, arrays), *splits)


def _whole_groups(group: np.ndarray, split: list[list[int]]) -> list[list[int]]:
    firsts = [sorted({int(group[row]) for row in rows}) for rows in split]
    seen: set[int] = set()
    result = []
    for found in firsts:
        own = [g for g in found if g not in seen]
        seen |= set(own)
        rows = np.flatnonzero(np.isin(group, own)).tolist()
        result += [rows] if rows else []
    return result


def we_say(question: Question, kind: str) -> tuple[float, np.ndarray]:
    """Our loss and gradient, summed over our micro-batches."""
    arrays = _typed(draw_arrays(question.seed) | question.more, kind)
    if "advantages" in question.more:  # then value targets follow from them
        arrays = {k: v for k, v in arrays.items() if k not in ("turn_rewards", "turn_index")}
    found = evaluate_algorithm(question.spec, arrays, micro_batches=question.ours)
    return found["loss"], found["gradient"]


def they_say(oracle: Any, question: Question, kind: str) -> tuple[float, np.ndarray]:
    """The oracle's loss and gradient."""
    arrays = draw_arrays(question.seed)
    arrays = _typed(arrays | {"rewards": last_tokens(arrays)} | question.more, kind)
    tensors = {name: torch.from_numpy(x) for name, x in arrays.items()}
    loss, gradient = oracle.ask(question.spec, tensors, question.theirs)
    return loss, gradient.numpy()


def _typed(arrays: Arrays, kind: str) -> Arrays:
    wanted = TYPES[kind]
    return {k: x.astype(wanted) if x.dtype == np.float64 else x for k, x in arrays.items()}


@dataclass(frozen=True)
class Row:
    """The largest gaps of an algorithm from an oracle, over its cases."""

    algorithm: str
    source: str
    cases: int
    loss: dict[str, float]
    gradient: dict[str, float]
    worst: dict[str, Any]  # the case with the largest gap beside its limit

    @property
    def within(self) -> bool:
        """No gap is above its limit."""
        gaps = (self.loss, self.gradient)
        return all(each[kind] <= limit for kind, limit in LIMITS.items() for each in gaps)


def compared(oracle: Any, name: str, cases: int) -> Row:
    """Ask both about `cases` questions, in float32 and float64."""
    loss, gradient = dict.fromkeys(TYPES, 0.0), dict.fromkeys(TYPES, 0.0)
    worst, largest = {}, -1.0
    for seed in range(cases):
        question = Question.draw(oracle, name, seed)
        for kind, limit in LIMITS.items():
            ours, theirs = we_say(question, kind), they_say(oracle, question, kind)
            gaps = (abs(ours[0] - theirs[0]), float(np.abs(ours[1] - theirs[1]).max()))
            if not np.isfinite(gaps).all():
                raise ValueError(f"{name}, seed {seed}, {question.spec}: {gaps}")
            loss[kind], gradient[kind] = max(loss[kind], gaps[0]), max(gradient[kind], gaps[1])
            if max(gaps) / limit > largest:
                largest = max(gaps) / limit
                worst = {"seed": seed, "type": kind, "spec": question.spec}
    return Row(name, oracle.source, cases, loss, gradient, worst)
