"""Function calls to imitate, with the faults that a teacher's data has."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Annotated

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.demonstrations.protocol import Demonstration
from agentrecipes.environments.protocol import Environment
from agentrecipes.errors import RecipeError
from agentrecipes.numerics.streams import derive
from agentrecipes.records import Action, Call, Task

Share = Annotated[float, Field(ge=0.0, le=1.0)]


@component("demonstrations")
class Calls(Component):
    """The environment's oracle says a task's thought and gold calls; a share of them is spoilt.

    One fault a demonstration at most: another value, an argument left out, a function that is not
    there, or no thought. They are what FunReason's five checks look for (Hao et al. 2025,
    https://arxiv.org/abs/2505.20192); the reward ``fcdr`` makes them.
    """

    count: Annotated[int, Field(ge=1)] = 3000  # demonstrations
    wrong_value: Share = 0.0  # an argument has another argument's value, or its own doubled
    left_out: Share = 0.0  # an argument is missing
    wrong_function: Share = 0.0  # a function is called that is not there
    no_thought: Share = 0.0  # the calls alone

    def draw(self, environment: Environment, seed: int) -> Sequence[Demonstration]:
        """`count` demonstrations of training tasks in a random order; the same for the same seed.

        Raises:
            RecipeError: there is no task to demonstrate, or the shares are more than all.
        """
        faults = self._faults()
        if sum(share for _, share in faults) > 1.0:
            raise RecipeError("demonstrations: the shares of the faults add up to more than 1")
        tasks = list(environment.tasks("train"))
        if not tasks:
            raise RecipeError("demonstrations: the dataset has no tasks in its train split")
        random = Random(derive(seed, "calls"))
        random.shuffle(tasks)
        return [
            _demonstration(
                environment, tasks[n % len(tasks)], fault=_drawn(faults, random), random=random
            )
            for n in range(self.count)
        ]

    def restate(
        self, demonstration: Demonstration, environment: Environment, seed: int
    ) -> Demonstration:
        """Itself: no name in code is exchanged."""
        return demonstration

    def _faults(self) -> list[tuple[str, float]]:
        names = ("wrong_value", "left_out", "wrong_function", "no_thought")
        return [(name, float(getattr(self, name))) for name in names]


def _drawn(faults: Sequence[tuple[str, float]], random: Random) -> str:
    """One fault in its share, or none."""
    left = random.random()
    for name, share in faults:
        left -= share
        if left < 0.0:
            return name
    return ""


def _demonstration(
    environment: Environment, task: Task, *, fault: str, random: Random
) -> Demonstration:
    """One turn; a fault that needs a call spoils nothing where none is made."""
    episode = environment.open(task, 0)
    said = environment.oracle(episode.task)(None)
    spoilt = _spoilt(said, fault, random)
    return Demonstration(
        task=episode.task,
        messages=episode.messages,
        turns=((environment.protocol.write(spoilt), ""),),
        weights=(1.0,),
        correct=spoilt == said,
    )


def _spoilt(said: Action, fault: str, random: Random) -> Action:
    if fault == "no_thought":
        return Action("", said.calls, said.answer)
    if not fault or not said.calls:
        return said
    place = random.randrange(len(said.calls))
    calls = list(said.calls)
    call = calls[place]
    arguments = dict(call.arguments)
    if fault == "wrong_function":
        calls[place] = Call(f"{call.tool}_x", arguments)
    elif arguments:
        key = random.choice(list(arguments))
        others = [value for name, value in arguments.items() if name != key]
        if fault == "left_out":
            del arguments[key]
        else:
            arguments[key] = random.choice(others) if others else [arguments[key]] * 2
        calls[place] = Call(call.tool, arguments)
    return Action(said.thought, tuple(calls))
