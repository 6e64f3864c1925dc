"""What verl's ``core_algos.py`` says about a batch.

``import verl`` needs Ray; this loads the one file, with stubs around it. verl is Apache-2.0;
nothing of it is copied here.
"""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oracles.inputs import CLIPS, IMPORTANCE, MEANS, Spec, a_few, kl_terms, with_constant

SOURCE = "verl 0.9.1, trainer/ppo/core_algos.py"
NAMES = (
    *("ppo", "grpo", "rloo", "dapo", "dr_grpo", "gspo", "cispo", "sapo"),
    *("reinforce", "reinforce_pp", "reinforce_pp_baseline"),
)
MODES = {
    "token_mean": "token-mean",
    "sequence_mean": "seq-mean-token-mean",
    "sequence_sum_norm": "seq-mean-token-sum-norm",
}
BY_SEQUENCE = {"grpo": "sequence_mean", "gspo": "sequence_mean", "sapo": "sequence_mean"}
LOSSES = {"gspo": "gspo", "sapo": "sapo", "cispo": "cispo", "reinforce": "gpg"}
ESTIMATORS = {
    "ppo": "gae",
    "rloo": "rloo",
    "reinforce": "reinforce_plus_plus",
    "reinforce_pp": "reinforce_plus_plus",
    "reinforce_pp_baseline": "reinforce_plus_plus_baseline",
}
NO_BOUND = 1e9


class Config(SimpleNamespace):
    """What verl's losses read their settings from."""

    def get(self, key: str, default: Any = None) -> Any:
        return getattr(self, key, default)


def _stub(name: str, **attributes: Any) -> ModuleType:
    module = ModuleType(name)
    module.__path__ = []
    module.__dict__.update(attributes)
    sys.modules[name] = module
    return module


def _real(root: Path, name: str) -> ModuleType:
    spec = spec_from_file_location(name, root / (name.replace(".", "/") + ".py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load(root: Path) -> tuple[ModuleType, ModuleType]:
    """verl's core algorithms and its correction of the sampler's probabilities, without verl."""
    for name in ("verl", "verl.trainer", "verl.trainer.ppo", "verl.workers"):
        _stub(name)
    utils = _stub("verl.utils")
    _stub("verl.protocol", DataProto=dict)
    _stub("verl.trainer.config", AlgoConfig=dict)
    _stub("verl.trainer.config.algorithm", RolloutCorrectionConfig=dict)
    _stub("verl.workers.config", ActorConfig=Config)
    _stub("verl.workers.config.actor", PolicyLossConfig=Config)
    _stub("verl.utils.device", get_device_name=lambda: "cpu", get_torch_device=lambda: torch.cpu)
    _stub("tensordict", TensorDict=dict)
    groupwise = _real(root, "verl.utils.groupwise")
    utils.as_torch_index = groupwise.as_torch_index
    utils.group_mean_std = groupwise.group_mean_std
    _real(root, "verl.utils.import_utils")
    utils.torch_functional = _real(root, "verl.utils.torch_functional")
    core = _real(root, "verl.trainer.ppo.core_algos")
    return core, _real(root, "verl.trainer.ppo.rollout_corr_helper")


class Oracle:
    """verl, for the algorithms that it has."""

    source, names = SOURCE, NAMES

    def __init__(self, folder: Path) -> None:
        self.core, self.correction = load(folder / "verl")

    def draw(self, name: str, random: np.random.Generator) -> Spec:
        """Fields that verl has too. Its gspo puts a token's weight on that token's gradient alone;
        ours, like TRL's, on the objective: the two agree for a trajectory's weight.
        """
        kl = kl_terms(("loss", "reward"), ("k1", "k2", "k3"))
        entropy = [None, None, 0.01]
        weights = [x for x in IMPORTANCE if name != "gspo" or not x or x["level"] == "sequence"]
        spec = {"name": name, **a_few(random, kl=kl, importance=weights, entropy=entropy)}
        if name not in ("reinforce", "sapo"):
            spec |= a_few(random, **CLIPS)
        if name not in ("reinforce", "sapo", "gspo", "cispo"):
            spec |= a_few(random, dual_clip=[None, 1.5, 3.0])
        if name != "sapo":
            spec |= a_few(random, aggregation=[None, *MEANS])
        if name in ("grpo", "dapo", "dr_grpo", "gspo", "sapo", "cispo"):
            spec |= a_few(random, std=[None, "sample", "none"])
        if name in ("ppo", "reinforce", "reinforce_pp"):
            spec |= {"whiten": True, **a_few(random, gamma=[None, 0.9])}
        if name == "ppo":
            spec |= a_few(random, lam=[None, 0.8], value_clip=[None, 0.5])
        if name == "sapo":
            spec |= a_few(random, tau_positive=[None, 0.7], tau_negative=[None, 1.4])
        return with_constant(spec)

    def given(self, spec: Spec, arrays: Any) -> Any:
        """What the question holds beside the arrays."""
        return {}

    def ask(self, spec: Spec, t: dict[str, Tensor], split: list[list[int]]) -> tuple[float, Tensor]:
        """Loss and gradient, summed over micro-batches with verl's global denominators."""
        kind = t["logp"].dtype
        mask = t["action_mask"].to(kind)
        wide = {name: x.double() if x.is_floating_point() else x for name, x in t.items()}
        found = self.advantages(spec, wide, mask.double())
        advantages, returns = (x.to(kind) for x in found)
        logp = t["logp"].clone().requires_grad_()
        info = {"batch_num_tokens": mask.sum(), "global_batch_size": len(mask)}
        info["loss_scale_factor"] = spec.get("max_tokens")
        total = torch.zeros(())
        for rows in split:
            own = {name: x[rows] for name, x in t.items()}
            part = (logp[rows], advantages[rows], mask[rows])
            total = total + self.loss(spec, own, part, info)
            if spec["name"] == "ppo":
                value, _ = self.core.compute_value_loss(
                    vpreds=own["values"],
                    returns=returns[rows],
                    values=own["values_old"],
                    response_mask=mask[rows],
                    cliprange_value=spec.get("value_clip", NO_BOUND),
                    batch_num_tokens=mask.sum(),
                )
                total = total + 0.5 * value
        [gradient] = torch.autograd.grad(total, logp)
        return float(total.detach()), gradient

    def advantages(self, spec: Spec, t: dict[str, Tensor], mask: Tensor) -> Any:
        """Advantages and returns in float64, as ours: in float32 an almost equal group is noise."""
        rewards, kl, name = t["rewards"].clone(), spec.get("kl", {}), spec["name"]
        if kl.get("place") == "reward":
            divergence = self.core.kl_penalty(t["logp_old"], t["logp_ref"], kl["estimator"])
            rewards = rewards - kl["coefficient"] * divergence * mask
        estimator = ESTIMATORS.get(name, "grpo")
        function = self.core.ADV_ESTIMATOR_REGISTRY[estimator]
        if estimator == "gae":
            gamma, lam = spec.get("gamma", 1.0), spec.get("lam", 1.0)
            return function(rewards, t["values_old"], mask, gamma, lam)
        if estimator == "reinforce_plus_plus":
            return function(rewards, mask, config=Config(gamma=spec.get("gamma", 1.0)))
        index = t["group"].numpy()
        if estimator == "grpo":
            default = "none" if name == "dr_grpo" else "sample"
            divided = spec.get("std", default) != "none"
            return function(rewards, mask, index=index, norm_adv_by_std_in_grpo=divided)
        found, returns = function(rewards, mask, index=index)
        if name == "reinforce_pp_baseline":  # ours leaves a group of equal rewards at 0
            totals = rewards.sum(dim=1)
            tied = [bool(totals[t["group"] == g].std() == 0) for g in t["group"]]
            found = torch.where(torch.tensor(tied)[:, None], 0.0, found)
        return found, returns

    def loss(
        self, spec: Spec, t: dict[str, Tensor], part: tuple[Tensor, ...], info: dict[str, Any]
    ) -> Tensor:
        logp, advantages, mask = part
        name = spec["name"]
        means = "sequence_sum_norm" if name == "dr_grpo" else BY_SEQUENCE.get(name, "token_mean")
        mode = MODES[spec.get("aggregation", means)]
        weights = None
        if importance := spec.get("importance"):
            weights, _ = self.correction.compute_rollout_correction_weights(
                t["logp_old"] - t["logp_rollout"],
                mask,
                rollout_is=importance["level"],
                rollout_is_threshold=importance["cap"],
            )
        function = self.core.POLICY_LOSS_REGISTRY[LOSSES.get(name, "vanilla")]
        total, _ = function(
            t["logp_old"],
            logp,
            advantages,
            mask,
            mode,
            _config(spec, info),
            rollout_is_weights=weights,
        )
        kl = spec.get("kl", {})
        if kl.get("place") == "loss":
            divergence = self.core.kl_penalty(logp, t["logp_ref"], kl["estimator"])
            total = total + kl["coefficient"] * self.core.agg_loss(divergence, mask, mode, **info)
        if "entropy" in spec:
            total = total - spec["entropy"] * self.core.agg_loss(t["entropy"], mask, mode, **info)
        return total


def _config(spec: Spec, info: dict[str, Any]) -> Config:
    name = spec["name"]
    low, high = {"dapo": (0.2, 0.28), "gspo": (3e-4, 4e-4), "cispo": (1.0, 4.0)}.get(
        name, (0.2, 0.2)
    )
    taus = {"tau_pos": spec.get("tau_positive", 1.0), "tau_neg": spec.get("tau_negative", 1.05)}
    return Config(
        clip_ratio=0.2,
        clip_ratio_low=spec.get("clip_low", low),
        clip_ratio_high=spec.get("clip_high", high),
        clip_ratio_c=spec.get("dual_clip", NO_BOUND),
        global_batch_info=info,
        policy_loss=Config(**taus),
        **taus,
    )
