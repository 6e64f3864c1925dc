"""What must hold of one stored trajectory: its tokens, their text, their places, their sums."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from agentrecipes.analysis.attempts import Attempt
from agentrecipes.environments.context import CONCATENATE, Context
from agentrecipes.protocols.protocol import ActionProtocol
from agentrecipes.records import Stop
from agentrecipes.tracking.rows import calls_json

if TYPE_CHECKING:
    from agentrecipes.rollout.chat import Chat

ROUNDING = 1e-9  # of sums in float64
Finding = tuple[str, int | None, str]
"""(check, turn or None for the whole trajectory, what was found)."""


@dataclass(frozen=True)
class Reader:
    """How a stage's tokens are read: the run's tokenizer, and the environment's protocol."""

    chat: Chat
    protocol: ActionProtocol
    context: Context = CONCATENATE

    def findings(self, attempt: Attempt) -> Iterator[Finding]:
        """Everything about the trajectory that does not hold."""
        yield from counts(attempt)
        yield from prefixes(attempt)
        yield from self._edits(attempt)
        for turn in attempt.turns:
            found = [*log_probabilities(turn), *self._texts(turn)]
            yield from ((check, turn["turn"], message) for check, message in found)

    def retokenised(self, attempt: Attempt) -> int:
        """Tokens that stand under other ids in a later prompt, which says the same text.

        That is what a chat written anew each turn does: the trainer then sees tokens that the
        policy never sampled. Where a context was edited, the text differs, and nothing is counted.
        """
        count = 0
        prompts = full_prompts(attempt)
        for before, (turn, prompt) in pairwise(zip(attempt.turns, prompts, strict=True)):
            stored, own = before
            old = [*own, *stored["action_ids"], *stored["observation_ids"]]
            if not turn["fork"] or prompt[: len(old)] == old:
                continue
            if self.chat.decode(prompt).startswith(self.chat.decode(old)):
                pairs = enumerate(zip(old, prompt, strict=False))
                count += len(old) - next((n for n, (a, b) in pairs if a != b), len(prompt))
        return count

    def _edits(self, attempt: Attempt) -> Iterator[Finding]:
        """Where the context is edited, every prompt is the opening and whole turns, as they stood.

        Which turns those are follows from the actions alone, so that it can be seen again.
        """
        if not self.context.edits:
            return
        turns, prompts = attempt.turns, full_prompts(attempt)
        actions = [self.protocol.parse(self._said(turn)) for turn in turns]
        for number in range(1, len(turns)):
            shown = self.context.shown(actions[:number])
            kept = [turns[each] for each in shown]
            wanted = [*prompts[0]]
            for turn in kept:
                wanted += [*turn["action_ids"], *turn["observation_ids"]]
            if prompts[number] != wanted:
                found = f"the prompt is not the opening and the turns {list(shown)}"
                yield "context", turns[number]["turn"], f"{found}, which the context still shows"

    def _said(self, turn: Mapping[str, Any]) -> str:
        """What an action's ids say, without the token that ended the message."""
        ids = list(turn["action_ids"])
        ended = ids[-1:] == [self.chat.eos]
        return self.chat.decode(ids[:-1] if ended else ids)

    def _texts(self, turn: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Text is a view of the ids: what stands beside them must be what they say."""
        ids, text = list(turn["action_ids"]), turn["action_text"]
        says, ended = self.chat.decode(ids), False
        if says != text and ids and ids[-1] in self.chat.tokenizer.all_special_ids:
            says, ended = self.chat.decode(ids[:-1]), True  # the token that ended the message
        if says != text:
            yield "text", f"action_ids say {_short(says)}, but action_text is {_short(text)}"
            return
        action = self.protocol.parse(text)
        if bool(turn["valid"]) != action.valid:
            yield "valid", f"valid is {turn['valid']}, but the action reads otherwise"
        if turn["calls"] != calls_json(action.calls):
            yield "calls", f"calls are {_short(turn['calls'])}, but the action's are others"
        yield from self._observed(turn, ended)

    def _observed(self, turn: Mapping[str, Any], ended: bool) -> Iterator[tuple[str, str]]:
        ids = tuple(turn["observation_ids"])
        role, text = self.protocol.observation_role, turn["observation_text"]
        if ids and ids != self.chat.observation(text, role, ended=ended)[0]:
            found = f"observation_ids say {_short(self.chat.decode(ids))}"
            yield "sources", f"{found}: not the template around {_short(text)}"


def counts(attempt: Attempt) -> Iterator[Finding]:
    """The sums of a trajectory's row against its turns."""
    row, turns = attempt.row, attempt.turns
    if not attempt.is_whole:
        numbers = [turn["turn"] for turn in turns]
        yield "turns", None, f"{row['turns']} turns are counted, but those stored are {numbers}"
        return
    if row["stop"] not in set(Stop):
        yield "stop", None, f"stop is {row['stop']!r}, which no trajectory ends by"
    for name, ids in (("policy_tokens", "action_ids"), ("observation_tokens", "observation_ids")):
        found = sum(len(turn[ids]) for turn in turns)
        if row[name] != found:
            yield "counts", None, f"{name} is {row[name]}, but {ids} hold {found}"
    by_turn = [turn["turn_total"] for turn in turns]
    if row["total"] is None:
        if any(total is not None for total in by_turn):
            yield "total", None, "total is null, but its turns have totals"
    elif turns and (None in by_turn or not _close(math.fsum(by_turn), row["total"])):
        yield "total", None, f"total is {row['total']!r}, but its turns add up to {by_turn}"
    versions = [turn["policy_version"] for turn in turns]
    if turns and (versions != sorted(versions) or row["policy_version"] != versions[0]):
        told = f"policy_version is {row['policy_version']}, and by turn {versions}"
        yield "version", None, f"{told}: it begins as the first turn's and never falls"


def weighted(attempt: Attempt, weights: Mapping[str, float]) -> Iterator[Finding]:
    """A training trajectory's total is the weighted sum of its parts."""
    parts, total = dict(attempt.row["parts"] or ()), attempt.row["total"]
    if parts.keys() != weights.keys():
        yield "parts", None, f"its parts are {sorted(parts)}, the recipe's {sorted(weights)}"
    elif total is not None:
        if None in parts.values():
            yield "parts", None, "a part is null, but the total is not"
        elif not _close(math.fsum(weights[name] * parts[name] for name in parts), total):
            yield "parts", None, f"total is {total!r}, which is not the weighted sum of {parts}"


def prefixes(attempt: Attempt) -> Iterator[Finding]:
    """Every prompt is exactly what came before, or says that it forks."""
    prompts = full_prompts(attempt)
    if attempt.turns and attempt.turns[0]["fork"]:
        yield "prefix", 0, "the first turn cannot fork: nothing comes before it"
    for (before, old), (turn, prompt) in pairwise(zip(attempt.turns, prompts, strict=True)):
        known = [*old, *before["action_ids"]]
        if turn["fork"]:
            if prompt[: len(known)] == known:
                yield "prefix", turn["turn"], "fork is true, but the prompt goes on as before"
        elif before["observation_ids"] and turn["prompt_ids"] != before["observation_ids"]:
            found = f"prompt_ids are {_ids(turn['prompt_ids'])}"
            wanted = f"the observation before is {_ids(before['observation_ids'])}"
            yield "prefix", turn["turn"], f"{found}, but {wanted}"


def full_prompts(attempt: Attempt) -> list[list[int]]:
    """All that the policy saw before each turn."""
    prompts: list[list[int]] = []
    for number, turn in enumerate(attempt.turns):
        before = attempt.turns[number - 1]
        known = [*prompts[-1], *before["action_ids"]] if number and not turn["fork"] else []
        prompts.append([*known, *turn["prompt_ids"]])
    return prompts


def log_probabilities(turn: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """One for each action token, each a log-probability."""
    logp, ids = turn["logp_rollout"], turn["action_ids"]
    if len(logp) != len(ids):
        yield "logp", f"there are {len(logp)} log-probabilities for {len(ids)} action tokens"
    wrong = [value for value in logp if value is None or not -math.inf < value <= ROUNDING]
    if wrong:
        yield "logp", f"{wrong[0]!r} is no log-probability"


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=ROUNDING, abs_tol=ROUNDING)


def _short(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 80 else f"{shown[:79]}…"


def _ids(ids: Sequence[int]) -> str:
    return str(list(ids)) if len(ids) <= 12 else f"{len(ids)} ids from {list(ids[:4])} on"
