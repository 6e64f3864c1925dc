"""Weights and optimizer state while DeepSpeed holds them in pieces, and a whole copy beside them.

Rajbhandari et al. 2020, https://arxiv.org/abs/1910.02054: every rank keeps a piece of the optimizer
state (stage 1), of the gradients (2) and of the weights (3). What trains is a copy of the model, so
that the model itself stays whole: it samples, is evaluated, goes to other engines and is written.
States are told by parameter, as one process would have them: a checkpoint knows no ranks.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch

from agentrecipes.training import ranks

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PreTrainedModel

    from agentrecipes.training.module import PolicyModule


class Shards:
    """One fit under DeepSpeed: `begin` once its engine is there, `refresh` when weights moved."""

    def __init__(self, module: PolicyModule) -> None:
        self.model: PreTrainedModel = module.model  # whole, and in step after `refresh`
        self.value_head: nn.Module | None = module.value_head
        self.still = False  # the optimizer step at hand moves nothing
        self._module = module
        self._engine: Any = None
        optimizer: Any = module.optimizer
        self._optimizer = optimizer
        self._before = optimizer.state_dict()
        self._own = [list(group["params"]) for group in optimizer.param_groups]
        module.model = copy.deepcopy(self.model)
        module.value_head = copy.deepcopy(self.value_head)
        self._trained = {name: p for name, p in _parameters(module.model, module.value_head)}
        twins = {id(p): self._trained[name] for name, p in self._whole()}
        for group, params in zip(optimizer.param_groups, self._own, strict=True):
            group["params"] = [twins[id(p)] for p in params]
        self._twins = [[twins[id(p)] for p in params] for params in self._own]
        optimizer.state.clear()

    def begin(self, engine: Any) -> None:
        """Take over where the optimizer stood; `engine` has cut everything into pieces."""
        self._engine = engine
        self._optimizer.register_step_pre_hook(self._hold_still)
        zero = engine.optimizer
        for number, param in enumerate(p for group in self._twins for p in group):
            state = self._before["state"].get(number)
            if state is not None:
                self._put(zero, param, state)
        self._before = {}

    def refresh(self) -> None:
        """Bring the whole copy up to date with what was trained."""
        with torch.no_grad():
            for name, whole in self._whole():
                if whole.requires_grad:
                    trained = self._trained[name]
                    with _gathered(trained):
                        whole.copy_(trained)

    def push_head(self) -> None:
        """Let training go on with the whole copy's value head."""
        own = dict(_parameters(None, self.value_head))
        for name, whole in own.items():
            trained = self._trained[name]
            with _gathered(trained, write=True), torch.no_grad():
                trained.copy_(whole)
            _set(self._engine.optimizer, trained, whole, key=None)

    def optimizer_state(self) -> dict[str, Any]:
        """The optimizer's state by parameter, on the CPU of rank 0; empty on the others."""
        groups = [
            {key: value for key, value in group.items() if key != "params"}
            for group in self._optimizer.param_groups
        ]
        state: dict[int, dict[str, Any]] = {}
        number = 0
        _link(self._engine.optimizer)
        for group, params in zip(groups, self._twins, strict=True):
            group["params"] = list(range(number, number + len(params)))
            for param in params:
                found = self._get(param)
                if found and ranks.leads():
                    state[number] = found
                number += 1
        return {"state": state, "param_groups": groups}

    def figures(self) -> dict[str, Tensor]:
        """What the last optimizer step was like: its gradient's norm, or that it was skipped."""
        zero = self._engine.optimizer
        if self.still or zero.overflow:
            return {"loss/skipped_steps": torch.tensor(1.0 if ranks.leads() else 0.0)}
        return {"policy/gradient_norm_max": torch.as_tensor(float(zero._global_grad_norm))}

    def end(self, *, whole: bool) -> None:
        """Give the module its own model back; `whole`: with all that was learned."""
        state = None
        if whole and self._engine is not None:
            self.refresh()
            state = ranks.from_first(self.optimizer_state())
        if self._engine is not None:
            self._engine.destroy()
        self._module.model = self.model
        self._module.value_head = self.value_head
        for group, params in zip(self._optimizer.param_groups, self._own, strict=True):
            group["params"] = params
        self._optimizer._optimizer_step_pre_hooks.clear()
        self._optimizer.state.clear()
        if state is not None:
            self._optimizer.load_state_dict(state)

    def _hold_still(self, optimizer: Any, *_: Any) -> None:
        """Take the gradients away: without them a step moves nothing, decay included."""
        if self.still:
            for group in optimizer.param_groups:
                for piece in group["params"]:
                    piece.grad = None

    def _whole(self) -> Iterator[tuple[str, Tensor]]:
        return _parameters(self.model, self.value_head)

    def _get(self, param: Tensor) -> dict[str, Any]:
        """A parameter's state, gathered from all ranks."""
        zero = self._engine.optimizer
        piece = _piece(zero, param, self._group_of(param))
        held = zero.optimizer.state.get(piece, {})
        found: dict[str, Any] = {}
        for key in sorted(held):
            value = held[key]
            if value.shape != piece.shape:
                found[key] = value.detach().clone().cpu()
                continue
            whole = _whole_state(zero, param, key)
            if ranks.leads():
                found[key] = whole.detach().cpu().clone()
        return found

    def _put(self, zero: Any, param: Tensor, state: dict[str, Any]) -> None:
        """Hand each rank its piece of a parameter's state."""
        piece = _piece(zero, param, self._group_of(param))
        held = zero.optimizer.state[piece]
        for key, value in state.items():
            if value.shape != param_shape(param):
                held[key] = value.clone()
            elif key not in held:
                held[key] = torch.zeros_like(piece)
        _link(zero)
        for key, value in state.items():
            if value.shape == param_shape(param):
                _set(zero, param, value, key=key)

    def _group_of(self, param: Tensor) -> int:
        return next(
            number
            for number, group in enumerate(self._twins)
            if any(param is other for other in group)
        )


@contextmanager
def sharded(module: PolicyModule) -> Iterator[Shards]:
    """The module with a copy of its model to cut into pieces, whole again afterwards."""
    shards = Shards(module)
    module.shards = shards
    learned = False
    try:
        yield shards
        learned = True
    finally:
        module.shards = None
        shards.end(whole=learned)


def param_shape(param: Any) -> torch.Size:
    """A parameter's shape, also while it is in pieces."""
    shape: torch.Size = param.ds_shape if hasattr(param, "ds_shape") else param.shape
    return shape


def _parameters(model: Any, head: Any) -> Iterator[tuple[str, Any]]:
    for prefix, part in (("model", model), ("value_head", head)):
        if part is not None:
            yield from ((f"{prefix}.{name}", own) for name, own in part.named_parameters())


def _gathered(param: Any, *, write: bool = False) -> Any:
    """The context in which a parameter has all its values; `write`: rank 0's changes are kept."""
    if not hasattr(param, "ds_id"):
        return nullcontext()
    import deepspeed

    return deepspeed.zero.GatheredParameters([param], modifier_rank=0 if write else None)


def _piece(zero: Any, param: Any, group: int) -> Tensor:
    """The flat tensor of this rank that the optimizer steps, in which the parameter has a place."""
    if hasattr(param, "ds_id"):
        flats, number = zero.fp32_partitioned_groups_flat, zero.grad_position
        found: Tensor = flats[number[zero.get_param_id(param)][0]]
        return found
    flat: Tensor = zero.single_partition_of_fp32_groups[group]
    return flat


def _link(zero: Any) -> None:
    """Let DeepSpeed find the pieces of the optimizer's state.

    By itself it looks once, in the middle of a first step, when only one group has a state.
    """
    if hasattr(zero, "_lazy_init_hp_params_optimizer_state"):
        zero._hp_optimizer_states_linked = False
        zero._lazy_init_hp_params_optimizer_state()


def _whole_state(zero: Any, param: Any, key: str) -> Tensor:
    found: Tensor
    if hasattr(param, "ds_id"):
        found = zero.get_full_hp_param(param, key)
    else:
        found = param.get_full_hp_param(key)
    return found


def _set(zero: Any, param: Any, value: Tensor, *, key: str | None) -> None:
    """Set a parameter's own full-precision values (key None) or its state, this rank's piece."""
    if not hasattr(param, "ds_id"):
        param.set_full_hp_param(value, key)
        return
    size = param.ds_tensor.numel()
    padded = value.new_zeros(size * ranks.count())  # the last rank's piece may reach beyond the end
    padded[: value.numel()] = value.detach().flatten()
    mine = padded[size * ranks.number() : size * (ranks.number() + 1)]
    zero.set_local_hp_param(mine, param, key)
