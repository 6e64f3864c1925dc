"""The door through which outside programs check an algorithm: arrays in, loss and gradient out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agentrecipes.algorithms.protocol import Algorithm, Outputs
from agentrecipes.components import build, suggest
from agentrecipes.records import Batch
from agentrecipes.testing.algorithm_suite import outputs_of, rows_of

TOKENS = ("logp", "logp_old", "logp_ref", "logp_rollout", "values", "values_old", "entropy")
ARRAYS = frozenset(TOKENS) | {
    "action_mask",  # (B, T) bool
    "advantages",  # (B, T): in place of the algorithm's own
    "token_weight",  # (B, T), sft
    "segment",  # (B, T) int, sft with a learned balance: 1 thought, 2 the rest, 0 neither
    "turn_index",  # (B, T) int, turn of each action token
    "turn_rewards",  # (B, turns)
    "turn_state",  # (B, turns) int, gigpo: equal numbers are equal states
    "parts",  # (B, rewards), with normalise: parts
    "part_weights",  # (rewards,); 1 each without
    "returns",  # (B,)
    "group",  # (B,) int
    "trajectory",  # (B,) int, where several rows are one trajectory: then B above is N
}


def evaluate_algorithm(
    spec: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    *,
    micro_batches: Sequence[Sequence[int]] | None = None,
) -> dict[str, Any]:
    """``loss`` (float), ``gradient`` (B, T) of it by ``logp``, ``advantages`` (B, T), ``terms``.

    `spec` is the algorithm as YAML writes it: ``{"name": "ppo", "clip_low": 0.2}``. `arrays` needs
    what the algorithm uses, see ARRAYS; each row is a trajectory unless ``trajectory`` says more.
    ``logp_old`` and ``values_old`` are ``logp`` and ``values`` where absent, as in the first update
    of an iteration. The type of ``logp`` is that of the computation. The denominators are the
    batch's own: all of it is one optimizer step, and a trajectory counts if it has an action token.
    `micro_batches` are the rows of each: then loss, gradient and terms are sums of their shares.

    Raises:
        ValueError: an unknown name, field or array; or an array that is needed is absent.
    """
    if unknown := sorted(set(arrays) - ARRAYS):
        raise ValueError(
            f"arrays: no array is called {unknown[0]!r}. {suggest(unknown[0], ARRAYS)}"
        )
    part: Any = build("algorithm", dict(spec))
    given = _Arrays(arrays, spec["name"])
    logp = given.tokens("logp").requires_grad_()
    batch, advantages = _prepared(part, _batch(part, given), given)
    own = part.own_parameters() if part.needs.own else {}
    outputs = Outputs(logp, given.tokens("values"), given.tokens("entropy"), own)
    losses = [part.loss(outputs, batch)]
    if micro_batches is not None:
        shares = [(outputs_of(outputs, rows), rows_of(batch, rows)) for rows in micro_batches]
        losses = [part.loss(*share) for share in shares]
    total = torch.stack([loss.total for loss in losses]).sum()
    [gradient] = torch.autograd.grad(total, logp, allow_unused=True, materialize_grads=True)
    terms = {name: sum(float(loss.terms[name]) for loss in losses) for name in losses[0].terms}
    return {
        "loss": float(total.detach()),
        "gradient": gradient.numpy(),
        "advantages": advantages.numpy(),
        "terms": terms,
    }


class _Missing:
    """Stands for an array that was not given, and says so as soon as anything is asked of it."""

    def __init__(self, name: str, algorithm: str) -> None:
        self.__dict__.update(message=f"arrays: {algorithm} needs {name!r}. Add it")

    def __getattr__(self, attribute: str) -> Any:
        raise ValueError(self.__dict__["message"])

    def __getitem__(self, key: Any) -> Any:
        raise ValueError(self.__dict__["message"])

    __add__ = __sub__ = __getitem__

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any, kwargs: Any = None) -> Any:
        [first, *_] = (value for value in args if isinstance(value, cls))
        raise ValueError(first.__dict__["message"])


class _Arrays:
    """The given arrays as tensors of the computation's type."""

    def __init__(self, arrays: Mapping[str, np.ndarray], algorithm: str) -> None:
        self._arrays, self._algorithm = arrays, algorithm
        for name in ("logp", "action_mask"):
            if name not in arrays:
                raise ValueError(f"arrays: {algorithm} needs {name!r}. Add it")
        self.mask = torch.from_numpy(np.asarray(arrays["action_mask"], dtype=bool))  # (B, T)
        self.dtype = torch.from_numpy(np.asarray(arrays["logp"])).dtype

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def get(self, name: str, dtype: torch.dtype) -> Any:
        """The array as a tensor; what stands for a missing one, if it is not there."""
        if name not in self._arrays:
            return _Missing(name, self._algorithm)
        return torch.from_numpy(np.array(self._arrays[name])).to(dtype)

    def tokens(self, name: str, *, default: str = "") -> Any:
        """(B, T) of the computation's type."""
        found = self.get(name if name in self or not default else default, self.dtype)
        if isinstance(found, Tensor) and found.shape != self.mask.shape:
            shapes = f"{tuple(found.shape)}, but action_mask {tuple(self.mask.shape)}"
            raise ValueError(f"arrays: {name} has shape {shapes}. Give both the same")
        return found


def _batch(part: Any, given: _Arrays) -> Batch:
    mask, empty = given.mask, torch.zeros(0, dtype=given.dtype)
    trajectory = torch.arange(mask.shape[0])
    if "trajectory" in given:
        trajectory = given.get("trajectory", torch.int64)
    returns = given.get("returns", torch.float64)
    if "returns" not in given and "turn_rewards" in given:
        returns = given.get("turn_rewards", torch.float64).sum(dim=1)
    elif "returns" not in given and "parts" in given:
        returns = given.get("parts", torch.float64).sum(dim=1)
    weight = _token_weight(part, given)
    turn_index = given.get("turn_index", torch.int64)
    return Batch(
        action_mask=mask,
        logp_old=given.tokens("logp_old", default="logp"),
        logp_rollout=given.tokens("logp_rollout"),
        logp_ref=given.tokens("logp_ref"),
        values_old=given.tokens("values_old", default="values"),
        advantage=empty,
        value_target=empty,
        token_weight=weight,
        turn_index=torch.where(mask, turn_index, -1) if "turn_index" in given else turn_index,
        turn_rewards=given.get("turn_rewards", torch.float64) if "turn_rewards" in given else empty,
        returns=returns,
        trajectory=trajectory,
        group=given.get("group", torch.int64),
        action_tokens=float(mask.sum()),
        sequences=float(torch.unique(trajectory[mask.any(dim=1)]).numel()),
        total_weight=float(weight.sum()),
        kl_coefficient=part.kl.in_force({}) if hasattr(part, "kl") else 0.0,
        turns=_turns(mask, trajectory, turn_index) if "turn_index" in given else 0.0,
        turn_state=given.get("turn_state", torch.int64),
        segment=given.get("segment", torch.int8) if "segment" in given else empty,
        part_returns=given.get("parts", torch.float64),
        part_weights=_part_weights(given),
    )


def _part_weights(given: _Arrays) -> tuple[float, ...]:
    if "parts" not in given:
        return ()
    parts = given.get("parts", torch.float64)
    weights = given.get("part_weights", torch.float64)
    return (1.0,) * parts.shape[1] if "part_weights" not in given else tuple(weights.tolist())


def _token_weight(part: Any, given: _Arrays) -> Tensor:
    if "token_weight" in given:
        return torch.as_tensor(given.tokens("token_weight"))
    observation = getattr(part, "observation_weight", 0.0)
    return torch.where(given.mask, 1.0, observation).to(given.dtype)


def _turns(mask: Tensor, trajectory: Tensor, turn_index: Tensor) -> float:
    owner = trajectory[:, None].expand_as(mask)[mask]  # (M,)
    pairs = torch.stack([owner, turn_index[mask]])  # (2, M)
    return float(torch.unique(pairs, dim=1).shape[1])


def _prepared(part: Algorithm, batch: Batch, given: _Arrays) -> tuple[Batch, Tensor]:
    """The batch with advantages and value targets, and the advantages."""
    if "advantages" in given:
        advantages = torch.where(batch.action_mask, given.tokens("advantages"), 0.0)
    else:
        advantages = part.advantages(batch)
    targets = batch.value_target
    if part.needs.value and ("returns" in given or "turn_rewards" in given):
        targets = part.value_targets(batch)
    elif part.needs.value:
        targets = advantages + torch.where(batch.action_mask, batch.values_old, 0.0)
    return replace(batch, advantage=advantages, value_target=targets), advantages
