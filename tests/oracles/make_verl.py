"""Ask verl's ``core_algos.py`` for advantages and losses, and write them to ``verl.json``.

    pip download --no-deps verl==0.9.1 --dest /tmp/verl
    python -m zipfile -e /tmp/verl/verl-0.9.1-py3-none-any.whl /tmp/verl/unpacked
    python tests/oracles/make_verl.py /tmp/verl/unpacked

``import verl`` needs Ray; this loads the one file with stubs around it. verl is Apache-2.0; nothing
of it is copied here, and no test imports it.
"""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
from inputs import arrays, write

HERE = Path(__file__).parent
SEEDS = (0, 1, 2)


class Config(SimpleNamespace):
    """What verl's losses read their settings from."""

    def get(self, key: str, default: Any = None) -> Any:
        return getattr(self, key, default)


def stub(name: str, **attributes: Any) -> ModuleType:
    module = ModuleType(name)
    module.__path__ = []
    module.__dict__.update(attributes)
    sys.modules[name] = module
    return module


def real(root: Path, name: str) -> ModuleType:
    path = root / (name.replace(".", "/") + ".py")
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load(root: Path) -> ModuleType:
    """verl's core algorithms, without verl."""
    for name in ("verl", "verl.trainer", "verl.trainer.ppo", "verl.workers"):
        stub(name)
    utils = stub("verl.utils")
    stub("verl.trainer.config", AlgoConfig=dict)
    stub("verl.workers.config", ActorConfig=Config)
    stub("verl.utils.device", get_device_name=lambda: "cpu", get_torch_device=lambda: torch.cpu)
    stub("tensordict", TensorDict=dict)
    groupwise = real(root, "verl.utils.groupwise")
    utils.as_torch_index = groupwise.as_torch_index
    utils.group_mean_std = groupwise.group_mean_std
    real(root, "verl.utils.import_utils")
    utils.torch_functional = real(root, "verl.utils.torch_functional")
    return real(root, "verl.trainer.ppo.core_algos")


def config(**settings: Any) -> Config:
    low, high = settings.get("low", 0.2), settings.get("high", 0.2)
    return Config(
        clip_ratio=0.2,
        clip_ratio_low=low,
        clip_ratio_high=high,
        clip_ratio_c=settings.get("dual", 1e9),
        global_batch_info=settings.get("info", {}),
        tau_pos=1.0,
        tau_neg=1.05,
        policy_loss=Config(tau_pos=1.0, tau_neg=1.05),
    )


class Asker:
    """One batch's questions."""

    def __init__(self, core: ModuleType, seed: int) -> None:
        self.core = core
        self.seed = seed
        self.arrays = arrays(seed)
        self.tensors = {name: torch.from_numpy(np.array(x)) for name, x in self.arrays.items()}
        self.mask = self.tensors["action_mask"].double()
        rewards = torch.zeros_like(self.mask)
        for row, value in enumerate(self.arrays["returns"]):
            rewards[row, int(self.mask[row].nonzero().max())] = value
        self.rewards = rewards
        self.cases: list[dict[str, Any]] = []

    def advantages(self, spec: dict[str, Any], estimator: str, *arguments: Any, **more: Any) -> Any:
        """Record verl's advantages for `spec`."""
        function = self.core.ADV_ESTIMATOR_REGISTRY[estimator]
        found, returns = function(self.rewards.clone(), *arguments, **more)
        found = torch.where(self.mask > 0, found, 0.0)
        case = {"seed": self.seed, "spec": spec, "verl": estimator, "advantages": found}
        self.cases.append(case)
        return found, returns

    def loss(
        self, spec: dict[str, Any], name: str, mode: str, settings: Any, *, more: Any = None
    ) -> None:
        """Record verl's loss and gradient for `spec`, given its GRPO advantages."""
        t = self.tensors
        logp = t["logp"].clone().requires_grad_()
        index = self.arrays["group"]
        given, _ = self.core.ADV_ESTIMATOR_REGISTRY["grpo"](
            self.rewards.clone(), self.mask, index=index
        )
        function, weights = self.core.POLICY_LOSS_REGISTRY[name], None
        if spec.get("importance"):
            weights = (t["logp_old"] - t["logp_rollout"]).exp().clamp(max=2.0)
        total, _ = function(
            t["logp_old"], logp, given, self.mask, mode, settings, rollout_is_weights=weights
        )
        if more is not None:
            total = total + more(logp)
        [gradient] = torch.autograd.grad(total, logp)
        case = {"seed": self.seed, "spec": spec, "verl": f"{name}, {mode}"}
        self.cases.append({**case, "loss": float(total.detach()), "gradient": gradient})


def ask_advantages(asker: Asker) -> None:
    index, mask = asker.arrays["group"], asker.mask
    values = asker.tensors["values_old"]
    gae = {"name": "ppo", "gamma": 0.97, "lam": 0.9}
    asker.advantages(gae, "gae", values, mask, 0.97, 0.9)
    asker.advantages({"name": "grpo"}, "grpo", mask, index=index)
    asker.advantages({"name": "dr_grpo"}, "grpo", mask, index=index, norm_adv_by_std_in_grpo=False)
    asker.advantages({"name": "rloo"}, "rloo", mask, index=index)
    baseline = "reinforce_plus_plus_baseline"
    asker.advantages({"name": "reinforce_pp_baseline"}, baseline, mask, index=index)
    spec = {"name": "reinforce_pp", "gamma": 0.9}
    asker.advantages(spec, "reinforce_plus_plus", mask, config=Config(gamma=0.9))


def ask_losses(asker: Asker) -> None:
    core, mask, t = asker.core, asker.mask, asker.tensors
    mean, tokens = "seq-mean-token-mean", "token-mean"

    def divergence(kind: str) -> Any:
        def term(logp: torch.Tensor) -> Any:
            return 0.05 * core.agg_loss(core.kl_penalty(logp, t["logp_ref"], kind), mask, mean)

        return term

    asker.loss({"name": "grpo"}, "vanilla", mean, config())
    asker.loss({"name": "grpo", "dual_clip": 1.5}, "vanilla", mean, config(dual=1.5))
    asker.loss({"name": "grpo", "importance": {"cap": 2.0}}, "vanilla", mean, config())
    for kind in ("k1", "k2", "k3"):
        kl = {"place": "loss", "estimator": kind, "coefficient": 0.05}
        asker.loss({"name": "grpo", "kl": kl}, "vanilla", mean, config(), more=divergence(kind))
    asker.loss({"name": "dapo"}, "vanilla", tokens, config(high=0.28))
    asker.loss({"name": "grpo", "aggregation": "token_mean"}, "vanilla", tokens, config())
    constant = config(info={"loss_scale_factor": 8})
    asker.loss(
        {"name": "dr_grpo", "max_tokens": 8, "std": "sample"},
        "vanilla",
        "seq-mean-token-sum-norm",
        constant,
    )
    asker.loss({"name": "gspo"}, "gspo", mean, config(low=3e-4, high=4e-4))
    asker.loss(
        {"name": "gspo", "clip_low": 0.1, "clip_high": 0.15},
        "gspo",
        mean,
        config(low=0.1, high=0.15),
    )
    asker.loss({"name": "sapo"}, "sapo", mean, config())
    asker.loss({"name": "cispo", "clip_high": 0.5}, "cispo", tokens, config(low=1.0, high=0.5))
    asker.loss({"name": "cispo", "clip_low": 0.3}, "cispo", tokens, config(low=0.3, high=4.0))


def ask_ppo(asker: Asker) -> None:
    """PPO's whole loss, value loss included, with the value targets of GAE."""
    core, t = asker.core, asker.tensors
    gae = core.ADV_ESTIMATOR_REGISTRY["gae"]
    given, returns = gae(asker.rewards.clone(), t["values_old"], asker.mask, 1.0, 1.0)
    logp = t["logp"].clone().requires_grad_()
    vanilla = core.POLICY_LOSS_REGISTRY["vanilla"]
    total, _ = vanilla(t["logp_old"], logp, given, asker.mask, "token-mean", config())
    value, _ = core.compute_value_loss(
        vpreds=t["values"],
        returns=returns,
        values=t["values_old"],
        response_mask=asker.mask,
        cliprange_value=0.5,
    )
    [gradient] = torch.autograd.grad(total, logp)
    spec = {"name": "ppo", "value_clip": 0.5, "value_coefficient": 0.7}
    case = {"seed": asker.seed, "spec": spec, "verl": "vanilla, token-mean, compute_value_loss"}
    loss = float(total.detach() + 0.7 * value)
    asker.cases.append({**case, "loss": loss, "gradient": gradient})


def main() -> None:
    core = load(Path(sys.argv[1]))
    cases: list[dict[str, Any]] = []
    for seed in SEEDS:
        asker = Asker(core, seed)
        ask_advantages(asker)
        ask_losses(asker)
        ask_ppo(asker)
        cases += asker.cases
    command = "python tests/oracles/make_verl.py FOLDER_OF_THE_UNPACKED_WHEEL"
    write(HERE / "verl.json", source="verl 0.9.1, core_algos.py", command=command, cases=cases)


if __name__ == "__main__":
    main()
