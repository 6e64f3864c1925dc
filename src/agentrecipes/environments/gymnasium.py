"""Any world of Gymnasium with a handful of actions, played in words."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from agentrecipes.components import Component, PartOf, component
from agentrecipes.environments import acting
from agentrecipes.environments.planning import foreseen, planned
from agentrecipes.environments.prompt import Text
from agentrecipes.environments.protocol import Agent, OnInvalid, Outcome
from agentrecipes.errors import MissingExtra, Problem, RecipeError, TaskFailed
from agentrecipes.numerics.streams import derive
from agentrecipes.records import Action, Call, Message, Task, ToolResult

Count = Annotated[int, Field(ge=1)]
COLOUR = re.compile(r"\x1b\[(?!0m)([\d;]+)m")
COLOURED = re.compile(rf"((?:{COLOUR.pattern})+)(.*?)(?:\x1b\[0m)+", re.DOTALL)
MARKS = {"34;1": "()", "35": "{}", "42": "<>"}  # by the code of a colour; else []


@component("environment")
class Gymnasium(Component):
    """The world `id`, once for each seed; the words `actions` are its actions 0, 1, 2, …

    An episode is won if it is over with a return of at least `win_at`, else lost; the answer says
    so and cannot be claimed: whoever answers gives up. The world's reward is the turn's. A drawing
    (`show: drawing`) is the world's own in letters; what it colours stands in brackets: the player
    in [], Taxi's passenger in (), goal in {}, and the taxi in <> while the passenger is inside.
    Needs Gymnasium (Towers et al. 2024, https://arxiv.org/abs/2407.17032).
    """

    id: Annotated[str, Field(min_length=1)] = "FrozenLake-v1"
    options: Mapping[str, str | int | float | bool] = {"is_slippery": False}  # of the world
    actions: Annotated[tuple[str, ...], Field(min_length=2)] = ("left", "down", "right", "up")
    about: Text = (
        "Cross the frozen lake from S to G over the ice F; H are holes. You are at []."  # the task
    )
    show: Literal["drawing", "observation"] = "drawing"
    entries: tuple[str, ...] = ()  # names of an observation's entries, where it is a tuple
    win_at: float = 1.0
    protocol: Annotated[Any, PartOf("protocol"), Field(validate_default=True)] = "action_tags"
    max_turns: Annotated[int, Field(ge=1)] = 20
    on_invalid: OnInvalid = OnInvalid()
    instructions: Literal["system", "user", "none"] = "user"  # where the protocol's stand
    system: Text | None = None  # a system message: text, or a file
    train: Count = 1000  # seeds
    dev: Count = 100
    test: Count = 100

    metrics: ClassVar[tuple[str, ...]] = ("exact_match",)
    symbols: ClassVar[frozenset[str]] = frozenset()

    def rules(self, stage: Any) -> Iterable[Problem]:
        """An action's word means one action."""
        twice = sorted({word for word in self.actions if self.actions.count(word) > 1})
        if twice:
            found, hint = f"two actions are called {twice[0]!r}", "Give each a word of its own."
            yield Problem("two_actions_of_one_name", "actions", found, hint)

    def require(self) -> None:
        """Make the world once.

        Raises:
            MissingExtra: Gymnasium is not installed.
            RecipeError: it has no such world, or the world has other actions.
        """
        world = self.made()
        count = getattr(world.action_space, "n", None)
        world.close()
        if count != len(self.actions):
            found = (
                f"{self.id} has {count or 'no countable'} actions, but {len(self.actions)} words"
            )
            raise RecipeError.about("wrong_value", found, path="environment.actions")

    def tasks(self, split: str) -> Sequence[Task]:
        """A task for each seed; no two splits share one."""
        count = {"train": self.train, "dev": self.dev, "test": self.test}[split]
        return _tasks(self.id, self.about, split=split, count=count)

    def open(self, task: Task, seed: int) -> WorldEpisode:
        """The world as its task's seed makes it.

        Raises:
            TaskFailed: the world cannot be made.
        """
        world = self.made()
        seen, _ = world.reset(seed=int(task.data["seed"]))
        shown = f"{self.about}\nActions: {', '.join(self.actions)}\n{self.shown(world, seen)}"
        messages = acting.opening(
            shown,
            protocol=self.protocol,
            about=f"Does one of: {', '.join(self.actions)}.",
            system=self.system,
            instructions=self.instructions,
        )
        return WorldEpisode(task, messages, self, Place(world, self.win_at))

    def oracle(self, task: Task) -> Agent:
        """Plans with the world's own table, or on copies of it; where chance rules, it may lose."""
        world = self.made()
        seen, _ = world.reset(seed=int(task.data["seed"]))
        if hasattr(world.unwrapped, "P"):
            numbers = _followed(_plan(self.id, tuple(sorted(self.options.items()))), world, seen)
        else:
            numbers = iter(foreseen(world, range(len(self.actions))))
        return lambda _: Action("next", tuple(acting.act_calls([self.actions[next(numbers, 0)]])))

    def random(self, task: Task, seed: int) -> Agent:
        """Any of the actions."""
        random = Random(derive(seed, "random", task.id))
        return lambda _: Action("next", tuple(acting.act_calls([random.choice(self.actions)])))

    def made(self) -> Any:
        """The world, not yet begun.

        Raises:
            MissingExtra: Gymnasium is not installed.
            RecipeError: there is no such world, or it does not take these options.
        """
        library = _library()
        mode = "ansi" if self.show == "drawing" else None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # worlds that are getting old say so
                return library.make(self.id, render_mode=mode, **self.options)
        except Exception as error:  # the boundary to worlds, which are anybody's code
            found = f"the world {self.id!r} cannot be made: {type(error).__name__}: {error}"
            hint = "See gymnasium.envs.registry for what there is."
            raise RecipeError.about("wrong_value", found, hint, path="environment.id") from error

    def shown(self, world: Any, seen: Any) -> str:
        """The drawing, or the observation in words."""
        if self.show == "drawing":
            return _plain(str(world.render()))
        if isinstance(seen, tuple) and len(self.entries) == len(seen):
            pairs = zip(self.entries, seen, strict=True)
            return ", ".join(f"{name}: {value}" for name, value in pairs)
        return str(seen)


@dataclass(slots=True)
class Place:
    """A world that is being played, what it has returned, and whether it is over."""

    world: Any
    win_at: float
    points: float = 0.0
    over: bool = False

    @property
    def won(self) -> bool:
        """Whether it returned enough."""
        return self.points >= self.win_at


@dataclass(frozen=True, slots=True)
class WorldEpisode:
    """One world being played."""

    task: Task
    messages: tuple[Message, ...]
    fields: Gymnasium
    place: Place

    async def step(self, action: Action) -> Outcome:
        """What the actions led to, one after the other; the end, if the world is over.

        Raises:
            TaskFailed: the world failed.
        """
        protocol = self.fields.protocol
        return await acting.acted(action, self.place, protocol, answered=self._result)

    async def close(self) -> None:
        """End the world."""
        self.place.world.close()

    async def _result(self, call: Call) -> ToolResult:
        command, known = acting.command(call, self.place), self.fields.actions
        if isinstance(command, ToolResult):
            return command
        if command.lower() not in [word.lower() for word in known]:
            return acting.refused(call, f"no action is called so. Do one of: {', '.join(known)}")
        number = [word.lower() for word in known].index(command.lower())
        try:
            seen, reward, over, cut, _ = self.place.world.step(number)
        except Exception as error:  # the boundary to worlds
            raise TaskFailed(f"{self.fields.id} failed: {type(error).__name__}: {error}") from error
        self.place.points += float(reward)
        self.place.over = bool(over or cut)
        return ToolResult(call, self.fields.shown(self.place.world, seen))


def _plain(drawing: str) -> str:
    """A drawing without colours: what they mark stands in brackets."""

    def marked(match: re.Match[str]) -> str:
        text = match[3]
        for code in reversed(COLOUR.findall(match[1])):
            brackets = MARKS.get(code, "[]")
            text = f"{brackets[0]}{text}{brackets[1]}"
        return text

    lines = COLOURED.sub(marked, drawing).splitlines()
    return "\n".join(line.rstrip() for line in lines if line.strip())


@lru_cache(maxsize=16)
def _tasks(name: str, about: str, *, split: str, count: int) -> tuple[Task, ...]:
    return tuple(
        Task(
            f"{name}-{split}-{number}",
            split,
            about,
            (acting.WON,),
            {"type": name, "seed": derive("gymnasium", split, number) % 2**31},
        )
        for number in range(count)
    )


@lru_cache(maxsize=64)
def _plan(name: str, options: tuple[tuple[str, Any], ...]) -> Mapping[int, int]:
    """The best action of each state of a tabular world."""
    world = Gymnasium(id=name, options=dict(options), show="observation").made()
    try:
        return planned(world.unwrapped.P)
    finally:
        world.close()


def _followed(plan: Mapping[int, int], world: Any, seen: Any) -> Iterator[int]:
    """The best actions from where a world stands, which goes on with each."""
    while True:
        yield plan[int(seen)]
        seen, *_ = world.step(plan[int(seen)])


@lru_cache(maxsize=1)
def _library() -> Any:
    try:
        import gymnasium
    except ImportError as error:
        raise MissingExtra(
            f"environment: gymnasium needs Gymnasium ({error}). "
            "Install it with: pip install 'agentrecipes[envs]'."
        ) from error
    return gymnasium
