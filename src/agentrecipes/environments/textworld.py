"""Text games of TextWorld: rooms, things, and commands in words."""

from __future__ import annotations

import asyncio
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal

from pydantic import Field

from agentrecipes.components import PartOf, component
from agentrecipes.environments import acting, story
from agentrecipes.environments.posed import Posed
from agentrecipes.environments.prompt import Text
from agentrecipes.environments.protocol import Agent, OnInvalid, Outcome
from agentrecipes.errors import MissingExtra, TaskFailed
from agentrecipes.numerics.streams import derive
from agentrecipes.records import Action, Call, Message, Task, ToolResult

ABOUT = "Says one command to the game, such as go east or take lamp."
COMMANDS = "Commands: "
BLIND = ("look", "inventory", "go north", "go east", "go south", "go west")


@component("environment")
class Textworld(Posed):
    """One game an episode; each turn says one command (or several, where the protocol can).

    The answer of an episode is ``won``, or ``lost``; neither can be claimed: whoever answers gives
    up. A turn's reward is what it added to the score, as a share of the most that there is; the
    reward ``environment`` brings it into the return, which is 1 for a game that is won. Needs
    TextWorld (Côté et al. 2018, https://arxiv.org/abs/1806.11532).
    """

    dataset: Annotated[Any, PartOf("dataset"), Field(validate_default=True)] = "games"
    protocol: Annotated[Any, PartOf("protocol"), Field(validate_default=True)] = "action_tags"
    max_turns: Annotated[int, Field(ge=1)] = 30
    on_invalid: OnInvalid = OnInvalid()
    commands: bool = True  # observations list the commands that do something
    score: bool = True  # observations tell the score
    instructions: Literal["system", "user", "none"] = "user"  # where the protocol's stand
    system: Text | None = None  # a system message: text, or a file
    seconds: Annotated[float, Field(gt=0.0)] = 30.0  # for one command

    def require(self) -> None:
        """Import TextWorld, once and before any episode.

        Raises:
            MissingExtra: it is not installed.
        """
        _library()

    def open(self, task: Task, seed: int) -> GameEpisode:
        """The game from its beginning; a game has no chance in it.

        Raises:
            TaskFailed: the game cannot be read; the message names its file.
            MissingExtra: TextWorld is not installed.
        """
        game, state = _started(Path(str(task.data["file"])))
        messages = acting.opening(
            self.shown(state),
            protocol=self.protocol,
            about=ABOUT,
            system=self.system,
            instructions=self.instructions,
        )
        return GameEpisode(task, messages, self, Game(game, state))

    def oracle(self, task: Task) -> Agent:
        """Follows the walkthrough; without one it looks around."""
        left = iter(task.data.get("walkthrough", ()))
        return lambda _: Action("next", tuple(acting.act_calls([next(left, "look")])))

    def random(self, task: Task, seed: int) -> Agent:
        """Says any of the commands that it was shown, or walks about."""
        random = Random(derive(seed, "random", task.id))

        def play(observation: str | None) -> Action:
            listed = (observation or "").rpartition(COMMANDS)[2].splitlines()
            told = self.commands and observation and COMMANDS in observation
            options = listed[0].split(", ") if told else BLIND
            return Action("next", tuple(acting.act_calls([random.choice(options)])))

        return play

    def shown(self, state: Any) -> str:
        """What a state looks like: its text, the score, and the commands."""
        lines = [story.readable(str(state["feedback"]))]
        if self.score:
            lines.append(f"Score: {state.score or 0} of {state.max_score}")
        if self.commands and not (state.won or state.lost):
            lines.append(COMMANDS + ", ".join(state.admissible_commands))
        return "\n".join(lines)


@dataclass(slots=True)
class Game:
    """A running game: its interpreter, and the state in which it stands."""

    interpreter: Any
    state: Any

    @property
    def over(self) -> bool:
        """Whether nothing more can be said."""
        return bool(self.state.won or self.state.lost)

    @property
    def won(self) -> bool:
        """Whether it ended as it should."""
        return bool(self.state.won)

    @property
    def points(self) -> float:
        """The share of the most that can be scored."""
        return float(self.state.score or 0) / max(1.0, float(self.state.max_score or 1))

    def say(self, command: str) -> None:
        """Go on to the state after a command."""
        self.state, _, _ = self.interpreter.step(command)


@dataclass(frozen=True, slots=True)
class GameEpisode:
    """One game being played."""

    task: Task
    messages: tuple[Message, ...]
    world: Textworld
    game: Game

    async def step(self, action: Action) -> Outcome:
        """What the commands led to, one after the other; the end, if the game is over.

        Raises:
            TaskFailed: the interpreter failed, or took too long.
        """
        protocol = self.world.protocol
        return await acting.acted(action, self.game, protocol, answered=self._result)

    async def close(self) -> None:
        """End the interpreter."""
        self.game.interpreter.close()

    async def _result(self, call: Call) -> ToolResult:
        command = acting.command(call, self.game)
        if isinstance(command, ToolResult):
            return command
        wrong = story.refused(command)
        if wrong is not None:
            return acting.refused(call, wrong)
        limit = self.world.seconds
        try:
            await asyncio.wait_for(asyncio.to_thread(self.game.say, command), limit)
        except TimeoutError:
            raise TaskFailed(f"the game took longer than {limit:g} s over {command!r}.") from None
        return ToolResult(call, self.world.shown(self.game.state))


def _started(file: Path) -> tuple[Any, Any]:
    """The interpreter of a game, and the first state."""
    library, wrong = _library(), story.fault(file)
    if wrong is not None:
        raise TaskFailed(f"the game {file} cannot be played: {wrong}.")
    wanted = library.EnvInfos(
        **dict.fromkeys(("admissible_commands", "won", "lost", "score", "max_score"), True)
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the interpreter keeps no score; TextWorld does
            interpreter = library.start(str(file), wanted)
            return interpreter, interpreter.reset()
    except Exception as error:  # the boundary to the interpreter
        why = f"{type(error).__name__}: {error}"
        raise TaskFailed(f"the game {file} cannot be played: {why}.") from error


@lru_cache(maxsize=1)
def _library() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import textworld
    except ImportError as error:
        raise MissingExtra(
            f"environment: textworld needs TextWorld ({error}). "
            "Install it with: pip install 'agentrecipes[envs]'."
        ) from error
    return textworld
