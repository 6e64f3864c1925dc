"""PPO with a value head for some steps, as one process or, run as a program, as a rank of several.

The data of every step are a function of its number, so that all strategies train on the same.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import torch
from makers import llama, random_rows
from peft import LoraConfig, PeftModel, get_peft_model
from test_invariance import some_step

from agentrecipes.components import build
from agentrecipes.models.value_head import value_head
from agentrecipes.recipe.schema import Optimizer, Trainer
from agentrecipes.training import checkpoints, fit, ranks
from agentrecipes.training import optimizer as optimizers
from agentrecipes.training.batch import MicroBatch, cut, filled, packed, read_batch
from agentrecipes.training.module import PolicyModule
from agentrecipes.training.policy import Policy
from agentrecipes.training.update import Update

STEPS = 12
MOST = 4  # micro-batches of a step: two on each of two ranks
OPTIMIZER = Optimizer(learning_rate=1e-2, value_learning_rate=3e-2, weight_decay=0.1)


@cache
def algorithm():
    return build("algorithm", {"name": "ppo", "entropy": 0.01})


def fields(strategy: str, devices: int, **others: object) -> Trainer:
    return Trainer(
        strategy=strategy,
        devices=devices,
        accelerator="cpu",
        tokens_per_batch=40,
        gradient_clip=0.5,
        **others,
    )


def policy(adapter: bool = True) -> Policy:
    """A small Llama, with an adapter or without, and a value head that says something."""
    model = llama()
    if adapter:
        model = get_peft_model(model, LoraConfig(r=4, lora_alpha=8, target_modules="all-linear"))
    torch.manual_seed(1)
    head = value_head(model.config)
    torch.nn.init.normal_(head.weight, std=0.2)
    module = PolicyModule(model, head)
    module.optimizer = optimizers.build(OPTIMIZER, module.groups())
    return Policy(module, build("model", "tiny").tokenizer(), None)


@dataclass
class Fitted:
    """What a fit left behind."""

    losses: list[float] = field(default_factory=list)  # one a step, of all ranks together
    norms: list[float] = field(default_factory=list)
    state: dict = field(default_factory=dict)  # a checkpoint's, taken while it was sharded
    logp: list[float] = field(default_factory=list)  # of some rows, by what was trained


def fitted(own: Policy, trainer: Trainer, steps: range) -> Fitted:
    """Train on the data of some steps."""
    module, told = own.module, Fitted()
    module.steps = steps.start

    def pull() -> Iterator[MicroBatch]:
        share = ranks.share(MOST)
        module.update = Update(algorithm(), 1.0, share, lambda step: 1.0 - step / 20)
        module.train()
        for number in steps:
            step = some_step(number)
            batch = step.prepared(algorithm())
            numbers = range(len(step.rows))
            parts = packed(step.rows, batch, numbers, trainer=trainer, most=MOST)
            yield from filled([replace(micro, exact=False) for _, micro in parts], MOST, number)

    def after_step() -> bool:
        report = module.report()
        told.losses.append(report["loss/total"])
        told.norms.append(report["policy/gradient_norm_max"])
        return False

    def after_epoch() -> bool:
        module.eval()
        module.refresh()
        told.state = own.state()
        told.logp = logp(module)
        return False

    callback = fit.EpochEnd(after_step=after_step, after_epoch=after_epoch)
    share = ranks.share(MOST)
    made = fit.trainer(trainer, epochs=1, accumulate=share, callback=callback)
    if trainer.strategy == "deepspeed_3":  # else weights as small as these would stay whole
        made.strategy.config["zero_optimization"]["stage3_param_persistence_threshold"] = 0
    fit.fit(made, module, fit.Pulled(pull, share * len(steps)), fields=trainer)
    return told


def logp(module: PolicyModule) -> list[float]:
    """Log-probabilities of the policy's tokens in five rows that nobody trained on."""
    rows = random_rows((9, 5, 12, 7, 3), 50, seed=5)
    with torch.no_grad():
        return module(cut(rows, read_batch(rows), range(5)).strip).logp.flatten().tolist()


def exported(own: Policy, folder: Path, adapter: bool) -> list[float]:
    """The same log-probabilities, by what transformers loads from the export."""
    own.export(folder)
    if adapter:
        model = PeftModel.from_pretrained(llama(), folder).merge_and_unload()
    else:
        model = type(llama()).from_pretrained(folder)
    return logp(PolicyModule(model, None).eval())


def gap(one: list[float], other: list[float]) -> float:
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def report(strategy: str, folder: Path, devices: int) -> dict[str, object]:
    """Everything that the tests compare, of one strategy."""
    trainer = fields(strategy, devices)
    whole = policy()
    straight = fitted(whole, trainer, range(STEPS))
    first = fitted(policy(), trainer, range(STEPS // 2))
    if ranks.leads():
        checkpoints.save(folder, first.state, stage=0, done=6, keep=1)
    ranks.gathered(None)  # nobody reads before it is written
    found = checkpoints.newest(folder)
    assert found is not None
    resumed = policy()
    resumed.restore(found.state)
    resumed.module.optimizer = optimizers.build(OPTIMIZER, resumed.module.groups())
    resumed.restore_optimizer(found.state)
    second = fitted(resumed, trainer, range(STEPS // 2, STEPS))
    full = policy(adapter=False)
    learned = fitted(full, trainer, range(2))
    if not ranks.leads():
        return {}
    return {
        "losses": straight.losses,
        "norms": straight.norms,
        "resumed": [*first.losses, *second.losses],
        "export_gap": gap(straight.logp, exported(whole, folder / "adapter", True)),
        "full_losses": learned.losses,
        "full_export_gap": gap(learned.logp, exported(full, folder / "full", False)),
        "moved": gap(straight.logp, logp(policy().module.eval())),
        "same_weights": all(
            torch.equal(a, b)
            for a, b in zip(whole.module.parameters(), resumed.module.parameters(), strict=True)
        ),
    }


if __name__ == "__main__":
    ranks.join(os.environ, gpu=False)
    torch.set_num_threads(1)
    outcome = report(sys.argv[1], Path(sys.argv[2]), ranks.count())
    if ranks.leads():
        (Path(sys.argv[2]) / "told.json").write_text(json.dumps(outcome))
    ranks.leave()
