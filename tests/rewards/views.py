"""Views written out for the tests of rewards."""

from __future__ import annotations

from typing import Any

from agentrecipes.records import Call, Stop, Task
from agentrecipes.rewards.protocol import View


def asked(*golds: str, answer=None, **data: object):
    """One answered turn, or one without an answer."""
    return played(("said", "", ()), golds=golds, answer=answer, **data)


def played(*turns: Any, golds=("Rome",), answer=None, tokens=None, **data: object):
    """Turns as (action, observation, calls); a call is a tool or (tool, arguments)."""
    actions, observations, calls = zip(*turns, strict=True) if turns else ((), (), ())
    return View(
        task=Task("t", "dev", "Where?", tuple(golds), data),
        actions=tuple(actions),
        observations=tuple(observations),
        calls=tuple(tuple(map(_call, each)) for each in calls),
        valid=tuple(action != "broken" for action in actions),
        answer=answer,
        stop=Stop.TURNS if answer is None else Stop.ANSWERED,
        tokens=tokens,
    )


def _call(call: Any) -> Call:
    return Call(call, {}) if isinstance(call, str) else Call(*call)
