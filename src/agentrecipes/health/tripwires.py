"""Rules that warn about a run or stop it, as pure functions of figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from agentrecipes.recipe.schema import DeadType, NoSignal


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a rule says: ``Verdict("stop", "the sampled score is 0.01 …", {"score": 0.01})``."""

    action: Literal["go", "warn", "pause", "stop", "extend"]
    message: str  # for the user; "" where the action is go
    evidence: Mapping[str, float]


def no_signal(rule: NoSignal, score: float | None, *, stage: str) -> Verdict:
    """Whether the sampled score before collecting stage `stage` can teach anything.

    None is a score that could not be computed: then there is no signal either.
    """
    if score is not None and score >= rule.below:
        return Verdict("go", "", {"score": score})
    found = "could not be computed" if score is None else f"is {score:.3f}"
    message = (
        f"tripwires.no_signal: the sampled score before stage {stage!r} {found}, below "
        f"{rule.below}: almost every group would get the same reward and nothing would be learned. "
        "Imitate longer, make the tasks easier, or set tripwires.no_signal.action to 'warn'."
    )
    return Verdict(rule.action, message, {} if score is None else {"score": score})


def dead_type(rule: DeadType, accuracy: Mapping[str, float], *, extensions: int) -> Verdict:
    """Whether imitation left out a kind of question; it was extended `extensions` times already.

    `accuracy` is by kind of question, measured by teacher forcing. After ``rule.times`` extensions
    the verdict is a warning.
    """
    dead = {kind: value for kind, value in sorted(accuracy.items()) if not value >= rule.below}
    if not dead:
        return Verdict("go", "", dict(accuracy))
    exhausted = rule.action == "extend" and extensions >= rule.times
    listed = ", ".join(f"{kind} {value:.2f}" for kind, value in dead.items())
    then = {
        "extend": f"Imitation goes on for {rule.steps} steps",
        "warn": "RL would hardly revive them",
        "stop": "RL would hardly revive them; imitate longer",
    }[rule.action]
    if exhausted:
        then = f"{extensions} extensions did not help; RL would hardly revive them"
    message = (
        f"tripwires.dead_type: imitation has not learned these kinds of question "
        f"(accuracy below {rule.below}): {listed}. {then}."
    )
    return Verdict("warn" if exhausted else rule.action, message, dead)
