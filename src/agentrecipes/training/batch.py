"""Rows as a Batch: (B, T) tensors of what the losses need, and micro-batches cut from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from agentrecipes.recipe.schema import Trainer
from agentrecipes.records import Batch, Scored, Source, Trajectory
from agentrecipes.training import ranks
from agentrecipes.training.pack import Strip, partition, strip
from agentrecipes.training.rows import Row

if TYPE_CHECKING:
    from torch import Tensor

PER_TRAJECTORY = (
    "turn_rewards",
    "turn_state",
    "returns",
    "group",
    "part_returns",
)  # (N, ...); others (B, ...)
ABSENT = torch.empty(0)


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """One forward and backward: a strip and the logical rows it holds.

    ``exact`` says that the current weights sampled or are those of ``logp_old``, so that the ratio
    is 1 by construction and ``logp_old`` is taken from the same forward pass.
    """

    strip: Strip
    batch: Batch
    policy_version: int
    exact: bool = False
    empty: bool = False  # a filler: it keeps the number of micro-batches equal and weighs nothing

    def to(self, device: torch.device) -> MicroBatch:
        return replace(self, strip=self.strip.to(device), batch=to_device(self.batch, device))


def to_device(batch: Batch, device: torch.device) -> Batch:
    """The same batch on another device."""
    moved: dict[str, Any] = {f.name: getattr(batch, f.name) for f in fields(batch)}
    for name, value in moved.items():
        moved[name] = value.to(device) if isinstance(value, torch.Tensor) else value
    return Batch(**moved)


def padded(arrays: Sequence[np.ndarray], fill: float) -> Tensor:
    """(B, T) from B arrays of at most T entries."""
    longest = max(len(array) for array in arrays)
    out = np.full((len(arrays), longest), fill, dtype=arrays[0].dtype)
    for number, array in enumerate(arrays):
        out[number, : len(array)] = array
    return torch.from_numpy(out)


def read_batch(rows: Sequence[Row]) -> Batch:
    """What algorithms that read data see: token weights instead of returns."""
    mask, turn_index = _labels(rows)
    weight = padded([row.weight for row in rows], 0.0)
    weight[:, 0] = 0.0  # nothing predicts a row's first token
    trajectory = torch.tensor([row.trajectory for row in rows])
    whose, local = torch.unique(trajectory, return_inverse=True)
    count = len(whose)  # demonstrations; one whose context was edited has several rows
    return Batch(
        action_mask=mask,
        logp_old=ABSENT,
        logp_rollout=ABSENT,
        logp_ref=ABSENT,
        values_old=ABSENT,
        advantage=ABSENT,
        value_target=ABSENT,
        token_weight=weight,
        turn_index=turn_index,
        turn_rewards=ABSENT,
        returns=torch.zeros(count, dtype=torch.float64),
        trajectory=local,
        group=torch.arange(count),
        action_tokens=float(mask.sum()),
        sequences=float(count),
        total_weight=float(weight.sum()),
        kl_coefficient=0.0,
        segment=padded([row.segment for row in rows], 0) if len(rows[0].segment) else ABSENT,
    )


def collected_batch(rows: Sequence[Row], scored: Sequence[Scored], kl_coefficient: float) -> Batch:
    """What algorithms that collect see, before advantages and log-probabilities are known.

    A trajectory whose return is no number (a reward with ``missing: mask`` is null, or the total is
    not finite) is in the batch and in every denominator, so that nothing else weighs more for it;
    but its tokens are not in the action mask, so that it has no loss of any kind.
    """
    returns = torch.tensor(
        [float("nan") if each.total is None else each.total for each in scored], dtype=torch.float64
    )
    trajectory = torch.tensor([row.trajectory for row in rows])
    mask, turn_index = _labels(rows)
    mask = mask & torch.isfinite(returns)[trajectory][:, None]
    names = {group: n for n, group in enumerate(dict.fromkeys(s.trajectory.group for s in scored))}
    width = max([1, *(len(each.trajectory.turns) for each in scored)])
    turn_rewards = np.zeros((len(scored), width))
    for number, each in enumerate(scored):
        turn_rewards[number, : len(each.per_turn)] = each.per_turn
    return Batch(
        action_mask=mask,
        logp_old=torch.zeros(mask.shape),
        logp_rollout=torch.where(mask, padded([row.logp_rollout for row in rows], 0.0), 0.0),
        logp_ref=ABSENT,
        values_old=ABSENT,
        advantage=ABSENT,
        value_target=ABSENT,
        token_weight=ABSENT,
        turn_index=torch.where(mask, turn_index, -1),
        turn_rewards=torch.from_numpy(turn_rewards),
        returns=returns,
        trajectory=trajectory,
        group=torch.tensor([names[each.trajectory.group] for each in scored]),
        total_weight=0.0,
        kl_coefficient=kl_coefficient,
        turn_state=turn_states([each.trajectory for each in scored], width),
        part_returns=part_returns(scored),
        part_weights=tuple(scored[0].weights.values()) if scored else (),
        segment=padded([row.segment for row in rows], 0) if len(rows[0].segment) else ABSENT,
        **denominators(rows)._asdict(),
    )


def part_returns(scored: Sequence[Scored]) -> Tensor:
    """(N, P) float64 each reward by itself, in the order of the weights; NaN for a null."""
    names = list(scored[0].weights) if scored else []
    values = [[each.parts.get(name) for name in names] for each in scored]
    table = [[float("nan") if value is None else value for value in row] for row in values]
    return torch.tensor(table, dtype=torch.float64).reshape(len(scored), len(names))


class Denominators(NamedTuple):
    """What an optimizer step takes its means over, see Batch."""

    action_tokens: float
    sequences: float
    turns: float


def denominators(rows: Sequence[Row]) -> Denominators:
    """Those of a step on these rows, whether all of them are trained on or not.

    A turn, or a trajectory, counts once over all its rows, if it has an action token.
    """
    tokens, turns = 0, set()
    for row in rows:
        own = row.turn_index[row.action_mask]
        tokens += len(own)
        turns |= {(row.trajectory, int(turn)) for turn in np.unique(own)}
    sequences = len({whose for whose, _ in turns})
    return Denominators(float(tokens), float(sequences), float(len(turns)))


def turn_states(trajectories: Sequence[Trajectory], width: int) -> Tensor:
    """(N, width) int64: turns of a group have one number where the same was seen before them.

    That is the observation's text, and before the first turn the opening; -1 beyond the turns.
    """
    states = torch.full((len(trajectories), width), -1)
    seen_in: dict[str, dict[str | tuple[int, ...], int]] = {}
    for number, each in enumerate(trajectories):
        known = seen_in.setdefault(each.group, {})
        for place, turn in enumerate(each.turns):
            seen = each.turns[place - 1].observation_text if place else turn.prompt
            states[number, place] = known.setdefault(seen, len(known))
    return states


def computed(batch: Batch, *, every_row: bool) -> list[bool]:
    """Whether each row must be computed: its trajectory has anything to learn from.

    `every_row`: what has no advantage counts too. Rows of a trajectory stay together, because a
    ratio or a mean may be taken over all of them.
    """
    weighs = batch.action_mask if every_row else batch.advantage != 0  # (B, T)
    taught = torch.zeros(len(batch.returns), dtype=torch.bool)
    taught[batch.trajectory[weighs.any(dim=1)]] = True
    wanted: list[bool] = taught[batch.trajectory].tolist()
    return wanted


def _labels(rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
    sources = padded([row.sources for row in rows], -1)
    mask = sources == Source.POLICY  # (B, T)
    turns = padded([row.turn_index for row in rows], -1)
    return mask, torch.where(mask, turns, -1)


def take(batch: Batch, rows: Sequence[int], longest: int) -> Batch:
    """The batch of some rows, all of each trajectory's, cut to `longest` tokens.

    Denominators stay those of the whole step: a micro-batch's loss is its share of the step's.
    """
    pick = torch.tensor(list(rows))
    whose, local = torch.unique(batch.trajectory[pick], return_inverse=True)
    values: dict[str, Any] = {f.name: getattr(batch, f.name) for f in fields(batch)}
    for name, value in values.items():
        if not isinstance(value, torch.Tensor) or value.numel() == 0:
            continue
        if name in PER_TRAJECTORY:
            values[name] = value[whose]
        elif name == "trajectory":
            values[name] = local
        else:
            values[name] = value[pick, :longest]
    return Batch(**values)


def cut(
    rows: Sequence[Row], batch: Batch, numbers: Sequence[int], *, share: bool = True
) -> MicroBatch:
    """The micro-batch of some rows; scored are the tokens with weight, or the action tokens."""
    own = [rows[n] for n in numbers]
    scored = [row.weight > 0 for row in own]
    part = take(batch, numbers, max(len(row) for row in own))
    return MicroBatch(strip(own, scored, share=share), part, 0)


def packed(
    rows: Sequence[Row], batch: Batch, numbers: Sequence[int], *, trainer: Trainer, most: int
) -> Iterator[tuple[list[int], MicroBatch]]:
    """At most `most` micro-batches of some rows, by the trainer's budget; each with its rows.

    On several ranks they are cut in the same way and dealt: this is the share of this rank.
    """
    share, own = trainer.share_prefix, [rows[n] for n in numbers]
    parts = partition(own, trainer.tokens_per_batch, most, share=share)
    for part in ranks.dealt(parts):
        chosen = [numbers[n] for n in part]
        yield chosen, cut(rows, batch, chosen, share=share)


def filler(version: int) -> MicroBatch:
    """A micro-batch of the smallest size that weighs nothing."""
    row = Row(
        ids=np.zeros(2, dtype=np.int64),
        sources=np.zeros(2, dtype=np.int8),
        turn_index=np.zeros(2, dtype=np.int64),
        logp_rollout=np.zeros(2, dtype=np.float32),
        weight=np.zeros(2, dtype=np.float32),
        trajectory=0,
    )
    nothing = strip([row], [np.array([False, True])])
    return MicroBatch(nothing, read_batch([row]), version, empty=True)


def filled(made: list[MicroBatch], most: int, version: int) -> list[MicroBatch]:
    """A rank's share of `most` micro-batches: those that were made, then fillers."""
    return made + [filler(version)] * (ranks.share(most) - len(made))
