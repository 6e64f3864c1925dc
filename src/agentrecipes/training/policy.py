"""The policy as a run holds it: network, tokenizer, chat; it passes from stage to stage."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from agentrecipes.models.protocol import Model
from agentrecipes.models.value_head import fitted, let_train, restored
from agentrecipes.recipe.schema import Stage
from agentrecipes.rollout.chat import Chat
from agentrecipes.training import optimizer as optimizers
from agentrecipes.training import ranks
from agentrecipes.training.checkpoints import read_tensors, write_tensors
from agentrecipes.training.export import save_model
from agentrecipes.training.module import PolicyModule


@dataclass(frozen=True)
class Policy:
    """Built once a run."""

    module: PolicyModule
    tokenizer: Any
    chat: Chat

    @classmethod
    def build(cls, part: Model, seed: int) -> Policy:
        """The recipe's model with fresh or loaded weights."""
        tokenizer = part.tokenizer()
        module = PolicyModule(part.build(seed), None).eval()
        return cls(module, tokenizer, Chat(tokenizer))

    def prepare(self, stage: Stage, reference: Path, *, begun: bool = False) -> None:
        """Give the module what `stage` needs: value head, reference and a new optimizer.

        The reference is the policy as the stage begins; it is kept in the file `reference`, so that
        a stage that had `begun` compares with the same one. With an adapter, it is the adapter
        switched off.

        Raises:
            CheckFailed: the stage had begun, and its reference is gone or damaged.
            OSError: the reference cannot be kept; all else is done.
        """
        needs, module = stage.algorithm.needs, self.module
        if needs.value:
            module.value_head = fitted(module.value_head, module.model, own=needs.own_trunk)
        if module.value_head is not None:
            let_train(module.value_head, needs.value)
        module.own = torch.nn.ParameterDict(stage.algorithm.own_parameters() if needs.own else {})
        module.keep_reference(None)
        module.optimizer = optimizers.build(stage.optimizer, module.groups(), module.tables())
        if needs.reference and not hasattr(module.model, "disable_adapter"):
            frozen = copy.deepcopy(module.model).requires_grad_(False).eval()
            module.keep_reference(frozen)
            if begun:
                frozen.load_state_dict(read_tensors(reference))
            elif ranks.leads():
                write_tensors(reference, dict(frozen.state_dict()))

    def export(self, folder: Path) -> None:
        """Write model and tokenizer where transformers loads them."""
        save_model(self.module, self.tokenizer, folder)

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps: what is trained, and the optimizer."""
        module = self.module
        head = module.whole_head
        trained = {n: p.detach() for n, p in module.whole.named_parameters() if p.requires_grad}
        return {
            "model": trained,
            "value_head": None if head is None else head.state_dict(),
            "own": {name: own.detach() for name, own in module.own.items()},
            "optimizer": module.optimizer_state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take weights and value head back; the optimizer follows when its stage is prepared."""
        own = dict(self.module.model.named_parameters())
        with torch.no_grad():
            for name, tensor in state["model"].items():
                own[name].copy_(tensor)
        if state["value_head"] is not None:
            self.module.value_head = restored(state["value_head"], self.module.model)

    def restore_optimizer(self, state: Mapping[str, Any]) -> None:
        """Take back the optimizer's state and the algorithm's own parameters, after `prepare`."""
        with torch.no_grad():
            for name, own in self.module.own.items():
                own.copy_(state["own"][name])
        if state["optimizer"] is not None and self.module.optimizer is not None:
            self.module.optimizer.load_state_dict(state["optimizer"])
