"""Trajectories as the data that the page's browser reads: compact JSON, safe inside HTML."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentrecipes.tracking.report.pieces import Pieces
from agentrecipes.tracking.report.sample import PLACE

BUDGET = 2_500_000  # bytes of JSON, so that the page stays under 3 MB
LONGEST = (4000, 1000, 400, 200)  # tokens of one passage; the first that fits the budget
ALWAYS = ("action", "tokens")  # what each turn says, be it empty
NATS = 1e-4  # the unit of log-probabilities
TEXT_PER_TOKEN = 6  # characters of a passage that is shown without its tokens

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RunTrajectories:
    """A run's chosen trajectories and what its tokens say."""

    run: str
    trajectories: Sequence[Row]
    pieces: Pieces | None

    def begun(self, share: float) -> RunTrajectories:
        """The first of them alone."""
        count = math.ceil(len(self.trajectories) * share)
        return replace(self, trajectories=self.trajectories[:count])


@dataclass(frozen=True, slots=True)
class Payload:
    """What goes into the page."""

    text: str  # JSON, safe inside a ``<script>`` element
    count: int  # of trajectories
    longest: int | None  # tokens of a passage, where some were cut; else None


def payload(runs: Sequence[RunTrajectories], *, budget: int = BUDGET) -> Payload:
    """The trajectories as JSON of at most `budget` bytes.

    Long passages lose their middle first; if that is not enough, the last trajectories go.
    """
    longest = next((each for each in LONGEST if _estimate(runs, each) <= budget), LONGEST[-1])
    share = min(1.0, 1.3 * budget / max(1, _estimate(runs, longest)))
    while True:
        encoder = _Encoder(longest)
        data = encoder.data([run.begun(share) for run in runs])
        text = _safe(json.dumps(data, ensure_ascii=False, separators=(",", ":")))
        count = len(data["trajectories"])
        size = len(text.encode(errors="replace"))
        if size <= budget or not count:
            return Payload(text, count, longest if encoder.has_cut else None)
        share *= 0.98 * budget / size if count > len(runs) else 0.0


def _safe(text: str) -> str:
    """JSON in which nothing can end the element that it stands in."""
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _estimate(runs: Sequence[RunTrajectories], longest: int) -> int:
    """About how many bytes the JSON has."""
    size = 0
    for run in runs:
        for row in run.trajectories:
            size += 250
            for turn in row["turns"]:
                passages = [
                    len(turn.get(f"{name}_ids") or ()) for name in ("prompt", "observation")
                ]
                size += 120 + 5 * sum(min(each, longest) for each in passages)
                each = 15 if len(set(turn.get("advantages") or ())) > 1 else 9
                size += each * min(len(turn.get("action_ids") or ()), longest)
    return size


@dataclass
class _Encoder:
    longest: int
    has_cut: bool = False
    _index: dict[tuple[int, int], int] = field(default_factory=dict)  # (run, token) → piece
    _pieces: list[str] = field(default_factory=list)
    _ids: list[int] = field(default_factory=list)
    _places: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def data(self, runs: Sequence[RunTrajectories]) -> dict[str, Any]:
        """``{runs, places, pieces, ids, trajectories}``; passages are lists of piece numbers.

        A negative number -n in a passage says that n tokens are left out; a passage is a text
        where the run has no tokenizer. What a turn does not say is empty or zero. ``surprise`` is
        -log-probability in units of `NATS`.
        """
        rows = [
            self._trajectory(row, index, run.pieces)
            for index, run in enumerate(runs)
            for row in run.trajectories
        ]
        return {
            "runs": [run.run for run in runs],
            "places": list(self._places),
            "pieces": self._pieces,
            "ids": self._ids,
            "trajectories": rows,
        }

    def _trajectory(self, row: Row, run: int, pieces: Pieces | None) -> dict[str, Any]:
        place = tuple(row[name] for name in PLACE)
        before: Row | None = None
        turns = []
        for turn in row["turns"]:
            turns.append(self._turn(turn, before, (run, pieces)))
            before = turn
        return {
            "run": run,
            "place": self._places.setdefault(place, len(self._places)),
            **{key: row.get(key) for key in ("task", "stop", "answer", "gold", "attempt")},
            "group": row.get("group_id"),
            "total": _short(row.get("total")),
            "advantage": _short(row.get("advantage_mean")),
            "parts": {str(name): _short(value) for name, value in row["parts"].items()},
            "version": row.get("policy_version"),
            "seconds": _short(row.get("seconds")),
            "turns": turns,
        }

    def _turn(self, turn: Row, before: Row | None, source: tuple[int, Pieces | None]) -> Row:
        action = list(turn.get("action_ids") or ())
        fork = bool(turn.get("fork"))
        prompt = list(turn.get("prompt_ids") or ())
        known = list(before.get("observation_ids") or ()) if before and not fork else []
        if known and prompt[: len(known)] == known:
            prompt = prompt[len(known) :]  # it stands there already, as the turn's observation
        told = {
            "prompt": self._passage(prompt, "", source),
            "action": self._passage(action, turn.get("action_text"), source),
            "observation": self._passage(
                turn.get("observation_ids") or (), turn.get("observation_text"), source
            ),
            "surprise": self._cut([_surprise(each) for each in turn.get("logp_rollout") or ()]),
            "tokens": [len(prompt), len(action), len(turn.get("observation_ids") or ())],
            "invalid": turn.get("valid") is False,
            "total": _short(turn.get("turn_total")),
            "engine": _short(turn.get("engine_seconds")),
            "tool": _short(turn.get("tool_seconds")),
            "advantages": self._advantages(turn.get("advantages") or ()),
            "fork": fork,
        }
        return {key: value for key, value in told.items() if value or key in ALWAYS}

    def _passage(
        self, ids: Iterable[int], text: str | None, source: tuple[int, Pieces | None]
    ) -> list[int] | str:
        run, pieces = source
        if pieces is None:
            text, most = text or "", self.longest * TEXT_PER_TOKEN
            if len(text) <= most:
                return text
            self.has_cut = True
            return f"{text[: most // 2]} […] {text[-(most // 2) :]}"
        numbers = []
        for number in ids:
            key = (run, number)
            if key not in self._index:
                self._index[key] = len(self._pieces)
                self._pieces.append(pieces.text(number))
                self._ids.append(number)
            numbers.append(self._index[key])
        return self._cut(numbers)

    def _advantages(self, values: Sequence[float | None]) -> list[Any]:
        """By token; a single one where all tokens of the turn share it."""
        shown = [_short(value) for value in values]
        return shown[:1] if len(set(shown)) == 1 else self._cut(shown)

    def _cut(self, values: list[Any]) -> list[Any]:
        """The values without their middle, if they are too many; -n stands for n of them."""
        left = len(values) - self.longest
        if left <= 0:
            return values
        self.has_cut = True
        half = self.longest // 2
        return [*values[:half], half * 2 - len(values), *values[-half:]]


def _surprise(logp: float | None) -> int | None:
    """How unlikely a token was: half as long as the log-probability in JSON."""
    return round(-logp / NATS) if logp is not None and math.isfinite(logp) else None


def _short(value: object) -> object:
    """A number with three digits; null for what JSON cannot say."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.3g}") if math.isfinite(value) else None
