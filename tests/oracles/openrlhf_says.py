"""What OpenRLHF's ``models/loss.py`` says about a batch.

Its package needs DeepSpeed, of which the losses use nothing: an empty module of that name stands in
while it is imported. Its advantages are bound to Ray workers, so that they are drawn here and given
to both sides. OpenRLHF is Apache-2.0; nothing of it is copied here.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oracles.inputs import CLIPS, DECIMALS, Arrays, Spec, a_few

SOURCE = "openrlhf 0.11.2, models/loss.py"
NAMES = ("ppo", "grpo", "rloo", "dapo", "gspo", "reinforce_pp", "dpo", "rft", "sft")
POLICY = ("ppo", "grpo", "rloo", "dapo", "gspo", "reinforce_pp")
AT_LEAST = 0.25  # rft: a success


class Oracle:
    """OpenRLHF, for the losses that it has."""

    source, names = SOURCE, NAMES

    def __init__(self, folder: Path) -> None:
        package = ModuleType("openrlhf_models")
        package.__path__ = [str(folder / "openrlhf" / "openrlhf" / "models")]
        before = sys.modules.get("deepspeed")
        sys.modules |= {"openrlhf_models": package, "deepspeed": ModuleType("deepspeed")}
        self.losses = importlib.import_module("openrlhf_models.loss")
        if before is None:
            del sys.modules["deepspeed"]
        else:
            sys.modules["deepspeed"] = before

    def draw(self, name: str, random: np.random.Generator) -> Spec:
        """Fields that OpenRLHF has too. Its KL terms are float32 whatever comes in: left out."""
        if name in ("dpo", "rft", "sft"):
            own = {"dpo": {"beta": [None, 0.5]}, "rft": {"at_least": [AT_LEAST]}, "sft": {}}
            return {"name": name, **a_few(random, **own[name])}
        spec = {"name": name, **a_few(random, **CLIPS, dual_clip=[None, 1.5, 3.0])}
        if name != "gspo":
            token = [None, {"cap": 2.0, "level": "token"}, {"cap": 1.2, "level": "token"}]
            means = [None, "token_mean", "sequence_mean"]
            spec |= a_few(random, importance=token, aggregation=means)
        if name == "ppo":
            spec |= a_few(random, value_clip=[None, 0.5])
        return spec

    def given(self, spec: Spec, arrays: Arrays) -> Arrays:
        """Advantages by token, the same for both sides."""
        if spec["name"] not in POLICY:
            return {}
        random = np.random.default_rng(len(arrays["logp"]))
        drawn = np.round(random.normal(size=arrays["logp"].shape), DECIMALS)
        if spec["name"] == "gspo":  # one for a trajectory: theirs has its ratio in one column
            drawn[:] = drawn[:, :1]
        return {"advantages": np.where(arrays["action_mask"], drawn, 0.0)}

    def ask(self, spec: Spec, t: dict[str, Tensor], split: list[list[int]]) -> tuple[float, Tensor]:
        """Loss and gradient, over micro-batches with OpenRLHF's global denominators."""
        logp = t["logp"].clone().requires_grad_()
        if spec["name"] == "dpo":
            total = self.preference(spec, logp, t)
        else:
            mask = self.trained(spec, t)
            counts = {"batch_num_tokens": mask.sum(), "global_batch_size": len(mask)}
            total = torch.zeros(())
            for rows in split:
                own = {name: x[rows] for name, x in t.items()}
                total = total + self.share(spec, logp[rows], own, {"mask": mask[rows], **counts})
        [gradient] = torch.autograd.grad(total, logp)
        return float(total.detach()), gradient

    def trained(self, spec: Spec, t: dict[str, Tensor]) -> Tensor:
        mask = t["action_mask"].to(t["logp"].dtype)
        if spec["name"] == "rft":
            return mask * (t["rewards"].sum(dim=1) >= AT_LEAST)[:, None]
        return mask

    def share(self, spec: Spec, logp: Tensor, t: dict[str, Tensor], more: dict[str, Any]) -> Tensor:
        counts = {name: x for name, x in more.items() if name != "mask"}
        mask, name = more["mask"], spec["name"]
        if name in ("rft", "sft"):
            nothing = not counts["batch_num_tokens"]
            found = self.losses.SFTLoss()(logp, mask, **counts)
            return 0.0 * logp.sum() if nothing else found
        found, *_ = self.policy(spec)(
            logp, t["logp_old"], t["advantages"], mask, t["logp_rollout"], **counts
        )
        if name == "ppo":
            returns = t["advantages"] + t["values_old"]
            value = self.losses.ValueLoss(spec.get("value_clip"))
            found = found + 0.5 * value(t["values"], t["values_old"], returns, mask, **counts)
        return found

    def policy(self, spec: Spec) -> Any:
        name = spec["name"]
        low, high = {"dapo": (0.2, 0.28), "gspo": (3e-4, 4e-4)}.get(name, (0.2, 0.2))
        default = "sequence_mean" if name in ("grpo", "gspo") else "token_mean"
        correction: dict[str, Any] = {}
        if importance := spec.get("importance"):
            correction = {"is_correction_level": "token", "is_correction_mode": "clip"}
            correction["is_correction_threshold"] = (0.0, importance["cap"])
        return self.losses.PolicyLoss(
            clip_eps_low=spec.get("clip_low", low),
            clip_eps_high=spec.get("clip_high", high),
            dual_clip=spec.get("dual_clip"),
            token_level_loss=spec.get("aggregation", default) == "token_mean",
            policy_loss_type="gspo" if name == "gspo" else "ppo",
            **correction,
        )

    def preference(self, spec: Spec, logp: Tensor, t: dict[str, Tensor]) -> Tensor:
        """DPO's loss of each group's best attempt and its worst."""
        mask, totals = t["action_mask"], t["rewards"].sum(dim=1)
        best, worst = [], []
        for group in t["group"].unique():
            own = torch.nonzero(t["group"] == group).flatten()
            if totals[own].max() > totals[own].min():
                best.append(int(own[totals[own].argmax()]))
                worst.append(int(own[totals[own].argmin()]))
        now = torch.where(mask, logp, 0.0).sum(dim=1)
        reference = torch.where(mask, t["logp_ref"], 0.0).sum(dim=1)
        loss, *_ = self.losses.DPOLoss(spec.get("beta", 0.1))(
            now[best], now[worst], reference[best], reference[worst]
        )
        return loss
