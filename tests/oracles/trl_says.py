"""What TRL's ``GRPOTrainer._compute_loss`` says about a batch.

The method is called on a stand-in that gives our log-probabilities. TRL computes advantages and
importance weights inside its generation step, which cannot be called alone: they are computed here
as written there. TRL is Apache-2.0; nothing of it is copied here.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from oracles.inputs import CLIPS, IMPORTANCE, LONGEST, Spec, a_few, kl_terms, with_constant

SOURCE = "trl 1.16.0, GRPOTrainer._compute_loss"
NAMES = ("grpo", "dapo", "dr_grpo", "gspo", "cispo", "sapo")
TYPES = {"dapo": "dapo", "dr_grpo": "dr_grpo", "cispo": "cispo", "sapo": "sapo"}
BY_MEAN = {"token_mean": "dapo", "sequence_mean": "grpo", "sequence_sum_norm": "dr_grpo"}


def _same(x: Any, **_: Any) -> Any:
    return x


class Oracle:
    """TRL, for the losses that its GRPO trainer has."""

    source, names = SOURCE, NAMES

    def __init__(self, folder: Path) -> None:
        sys.path.append(str(folder / "trl"))  # behind: ours decide about what both have
        from trl import GRPOTrainer

        self.trainer = GRPOTrainer

    def draw(self, name: str, random: np.random.Generator) -> Spec:
        """Fields that TRL has too: k3 in the loss, clips, a token-level entropy bonus."""
        spec = {"name": name, **a_few(random, kl=kl_terms(("loss",), ("k3",)))}
        spec |= a_few(random, importance=IMPORTANCE, std=[None, "sample", "none"])
        if name not in ("sapo", "cispo"):
            spec |= a_few(random, **CLIPS)
        if name == "cispo":
            spec |= a_few(random, clip_high=[None, 0.5, 1.5], entropy=[None, 0.01])
        if name == "dapo":
            spec |= a_few(random, dual_clip=[None, 1.6, 3.0], entropy=[None, 0.01])
        if name in ("grpo", "gspo"):
            spec |= a_few(random, aggregation=[None, *BY_MEAN])
        if name == "grpo":
            spec |= a_few(random, dual_clip=[None, 1.6, 3.0])
        return with_constant(spec)

    def given(self, spec: Spec, arrays: Any) -> Any:
        """What the question holds beside the arrays."""
        return {}

    def ask(self, spec: Spec, t: dict[str, Tensor], split: list[list[int]]) -> tuple[float, Tensor]:
        """Loss and gradient; in two accumulated halves where the split has more than one part."""
        logp = t["logp"].clone().requires_grad_()
        mask = t["action_mask"].long()
        whole = len(split) == 1 or "entropy" in spec  # TRL's bonus is a mean of each half's own
        parts = 1 if whole else 2
        total = torch.zeros(())
        for rows in torch.arange(len(mask)).chunk(parts):
            own = {name: x[rows] for name, x in t.items()}
            inputs = _inputs(spec, own, advantages(spec, t)[rows])
            inputs["num_items_in_batch"] = mask.sum()
            fake = stand_in(spec, logp[rows], own["entropy"], parts)
            total = total + self.trainer._compute_loss(fake, None, inputs)
        [gradient] = torch.autograd.grad(total, logp)
        return float(total.detach()), gradient


def advantages(spec: Spec, t: dict[str, Tensor]) -> Tensor:
    """(B,) group-relative, with the epsilon of ours: TRL's 1e-4 cannot be set."""
    totals = t["rewards"].double().sum(dim=1)
    result = torch.zeros_like(totals)
    divided = spec.get("std", "none" if spec["name"] == "dr_grpo" else "sample") != "none"
    for group in t["group"].unique():
        own = totals[t["group"] == group]
        scale = own.std() + 1e-6 if divided else 1.0
        result[t["group"] == group] = (own - own.mean()) / scale
    return result.to(t["logp"].dtype)


def _inputs(spec: Spec, t: dict[str, Tensor], given: Tensor) -> dict[str, Any]:
    mask = t["action_mask"].long()
    inputs = {
        "prompt_ids": torch.ones(len(mask), 1, dtype=torch.long),
        "prompt_mask": torch.ones(len(mask), 1, dtype=torch.long),
        "completion_ids": torch.ones_like(mask),
        "completion_mask": mask,
        "advantages": given,
        "old_per_token_logps": t["logp_old"],
        "ref_per_token_logps": t["logp_ref"],
    }
    if importance := spec.get("importance"):
        gap = (t["logp_old"] - t["logp_rollout"]) * mask
        if importance["level"] == "sequence":
            gap = gap.sum(dim=-1, keepdim=True)
        inputs["importance_sampling_ratio"] = gap.exp().clamp(max=importance["cap"])
    return inputs


def stand_in(spec: Spec, logp: Tensor, entropy: Tensor, parts: int) -> SimpleNamespace:
    """A trainer that says `logp` whatever it is asked, in the middle of `parts` accumulated."""
    name = spec["name"]
    weights = dict.fromkeys(("vespo_k_pos", "vespo_lambda_pos", "vespo_k_neg", "vespo_lambda_neg"))
    arguments = SimpleNamespace(
        use_bias_correction_kl=False,
        delta=spec.get("dual_clip"),
        steps_per_generation=parts,
        sapo_temperature_pos=1.0,
        sapo_temperature_neg=1.05,
        **weights,
    )
    accelerator = SimpleNamespace(
        num_processes=1, sync_gradients=True, gather=_same, gather_for_metrics=_same, reduce=_same
    )
    return SimpleNamespace(
        loss_type=TYPES.get(name, BY_MEAN[spec.get("aggregation", "sequence_mean")]),
        importance_sampling_level="sequence" if name == "gspo" else "token",
        beta=spec.get("kl", {}).get("coefficient", 0.0),
        **_clips(spec),
        max_completion_length=spec.get("max_tokens", LONGEST),
        current_gradient_accumulation_steps=parts,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        aux_loss_enabled=False,
        use_vllm="importance" in spec,
        vllm_importance_sampling_correction="importance" in spec,
        _entropy_bonus_enabled="entropy" in spec,
        use_adaptive_entropy=False,
        entropy_coef=spec.get("entropy"),
        _metrics={"train": defaultdict(list), "eval": defaultdict(list)},
        model=SimpleNamespace(training=True),
        accelerator=accelerator,
        args=arguments,
        _get_per_token_logps_and_entropies=lambda *_, **__: (logp, entropy, None),
    )


def _clips(spec: Spec) -> dict[str, float]:
    """TRL's epsilon_high of cispo is the largest ratio itself."""
    low, high = {"dapo": (0.2, 0.28), "gspo": (3e-4, 4e-4), "cispo": (1.0, 4.0)}.get(
        spec["name"], (0.2, 0.2)
    )
    low, high = spec.get("clip_low", low), spec.get("clip_high", high)
    return {"epsilon_low": low, "epsilon_high": high + 1 if spec["name"] == "cispo" else high}
