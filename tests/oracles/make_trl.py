"""Ask TRL's ``GRPOTrainer._compute_loss`` for losses, and write them to ``trl.json``.

    pip install --target /tmp/trl --no-deps trl==1.16.0 accelerate datasets dill multiprocess \\
        xxhash
    PYTHONPATH=/tmp/trl python tests/oracles/make_trl.py

The method is called on a stand-in that gives our log-probabilities. TRL is Apache-2.0; nothing of
it is copied here, and no test imports it.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from trl import GRPOTrainer

sys.path.insert(0, str(Path(__file__).parent))
from inputs import LENGTH, arrays, write

HERE = Path(__file__).parent
SEEDS = (10, 11)


def same(x: Any, **_: Any) -> Any:
    return x


def stand_in(logp: torch.Tensor, **settings: Any) -> SimpleNamespace:
    """A trainer that says `logp` whatever it is asked."""
    weights = dict.fromkeys(("vespo_k_pos", "vespo_lambda_pos", "vespo_k_neg", "vespo_lambda_neg"))
    arguments = SimpleNamespace(
        use_bias_correction_kl=False,
        delta=None,
        steps_per_generation=1,
        sapo_temperature_pos=1.0,
        sapo_temperature_neg=1.05,
        **weights,
    )
    accelerator = SimpleNamespace(
        num_processes=1, sync_gradients=True, gather=same, gather_for_metrics=same, reduce=same
    )
    defaults = {"loss_type": "grpo", "importance_sampling_level": "token", "beta": 0.0}
    defaults |= {"epsilon_low": 0.2, "epsilon_high": 0.2, "use_vllm": False}
    return SimpleNamespace(
        **(defaults | settings),
        max_completion_length=LENGTH,
        current_gradient_accumulation_steps=1,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        aux_loss_enabled=False,
        vllm_importance_sampling_correction=settings.get("use_vllm", False),
        _entropy_bonus_enabled=False,
        _metrics={"train": defaultdict(list), "eval": defaultdict(list)},
        model=SimpleNamespace(training=True),
        accelerator=accelerator,
        args=arguments,
        _get_per_token_logps_and_entropies=lambda *_, **__: (logp, torch.zeros_like(logp), None),
    )


def ask(seed: int, spec: dict[str, Any], **settings: Any) -> dict[str, Any]:
    """One loss and its gradient, with group-relative advantages."""
    t = {name: torch.from_numpy(np.array(x)) for name, x in arrays(seed).items()}
    mask = t["action_mask"].long()
    group = t["returns"].view(2, 3)
    given = (group - group.mean(1, keepdim=True)) / (group.std(1, keepdim=True) + 1e-6)
    logp = t["logp"].clone().requires_grad_()
    inputs = {
        "prompt_ids": torch.ones(len(mask), 1, dtype=torch.long),
        "prompt_mask": torch.ones(len(mask), 1, dtype=torch.long),
        "completion_ids": torch.ones_like(mask),
        "completion_mask": mask,
        "advantages": given.flatten(),
        "old_per_token_logps": t["logp_old"],
        "ref_per_token_logps": t["logp_ref"],
        "num_items_in_batch": mask.sum(),
        "importance_sampling_ratio": (t["logp_old"] - t["logp_rollout"]).exp().clamp(max=2.0),
    }
    loss = GRPOTrainer._compute_loss(stand_in(logp, **settings), None, inputs)
    [gradient] = torch.autograd.grad(loss, logp)
    answer = {"seed": seed, "spec": spec, "trl": settings}
    return {**answer, "loss": float(loss.detach()), "gradient": gradient}


def main() -> None:
    cases = []
    for seed in SEEDS:
        kl = {"place": "loss", "estimator": "k3", "coefficient": 0.04}
        wide = {"clip_low": 0.1, "clip_high": 0.15}
        cases += [
            ask(seed, {"name": "grpo"}),
            ask(seed, {"name": "grpo", "kl": kl}, beta=0.04),
            ask(seed, {"name": "grpo", "importance": {"cap": 2.0}}, use_vllm=True),
            ask(seed, {"name": "dapo"}, loss_type="dapo", epsilon_high=0.28),
            ask(seed, {"name": "grpo", "aggregation": "token_mean"}, loss_type="bnpo"),
            ask(
                seed,
                {"name": "dr_grpo", "max_tokens": LENGTH, "std": "sample"},
                loss_type="dr_grpo",
            ),
            ask(
                seed,
                {"name": "gspo", **wide},
                importance_sampling_level="sequence",
                epsilon_low=0.1,
                epsilon_high=0.15,
            ),
            ask(seed, {"name": "sapo"}, loss_type="sapo"),
            ask(seed, {"name": "cispo", "clip_high": 0.5}, loss_type="cispo", epsilon_high=1.5),
        ]
    command = "python tests/oracles/make_trl.py"
    source = "trl 1.16.0, GRPOTrainer._compute_loss"
    write(HERE / "trl.json", source=source, command=command, cases=cases)


if __name__ == "__main__":
    main()
