"""What a valid action leads to, by the environment's own rules for its context and its answers."""

from __future__ import annotations

from dataclasses import dataclass

from agentrecipes.environments.context import MEMORY, context_of, remembers
from agentrecipes.environments.protocol import Environment, Episode, Outcome
from agentrecipes.errors import TaskFailed
from agentrecipes.records import Action, Call, ToolResult

ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class Past:
    """What stands before an action: ``Past((search, search), logp=(-0.1, -0.7))``."""

    actions: tuple[Action, ...] = ()  # of all turns before it, unreadable ones too
    logp: tuple[float, ...] = ()  # of the action's own tokens, nats; empty where it was written

    @property
    def invalid(self) -> int:
        """How many of them could not be read."""
        return sum(not action.valid for action in self.actions)


async def step(
    environment: Environment, episode: Episode, action: Action, *, past: Past
) -> Outcome:
    """Carry out a valid action: memory calls here, all others by the episode.

    Raises:
        TaskFailed: the environment or one of its tools failed.
    """
    refused = _refused(environment, action, past)
    if refused is not None:
        return refused
    context = context_of(environment)
    edits = action.answer is None and any(call.tool in MEMORY for call in action.calls)
    if edits and remembers(environment):
        results = context.results(action, past.actions)
        became = tuple("edited" if result.error is None else "error" for result in results)
        return Outcome(observation=environment.protocol.render(results), calls=became)
    outcome = await episode.step(action)
    if outcome.context is not None and context.edits:
        raise TaskFailed(
            f"the environment gives whole new contexts, and context.policy is {context.policy!r}. "
            "Leave the policy out"
        )
    return outcome


def _refused(environment: Environment, action: Action, past: Past) -> Outcome | None:
    """What an answer draws that does not count."""
    rule = getattr(environment, "halting", None)
    last = len(past.actions) + 1 >= environment.max_turns
    if rule is None or last or action.answer is None:
        return None
    if not rule.refuses(past.actions, past.logp):
        return None
    result = ToolResult(Call(ANSWER, {}), rule.note)
    return Outcome(observation=environment.protocol.render([result]))
