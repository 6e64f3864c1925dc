"""A whole iteration of one turn, ours beside TRL's: sampling, rewards, advantages, one update.

    python bench/iteration_vs_trl.py            # all shapes; the first call installs TRL beside us
    python bench/iteration_vs_trl.py --quick    # the small shapes, in minutes
    python bench/iteration_vs_trl.py --json

Same weights in float32, same prompts, completions of one forced length (no side has an end token,
so that forbidding one costs nothing), the same reward on the completion's text, different for every
attempt so that every group has a gradient. DAPO's loss without KL, clip at 1, one AdamW step.

Counted for ours: requests, the native engine with log-probabilities, decoding to text, rewards,
rows and batch, advantages, packing, the module's training step with its log, clipping, the step,
and handing the weights to the engine. Counted for TRL: tokenising and sampling by the trainer's own
path (`generate`), decoding to text, rewards, advantages, its metrics, `training_step`, clipping and
the step. Counted for neither: the loops around them, Lightning's and transformers', with data
loading, callbacks and logging to files; environments, chat templates, tables and checkpoints.

`head` tells how TRL computes its logits: at every position, as shipped on a CPU, or at scored ones.
What is timed trains on its own samples. `gradient_gap` is of one more iteration, before: TRL is
given our samples, and makes rewards, advantages and gradients of them in its own way.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from beside_trl import (
    Shape,
    gradient_gap,
    grpo_trainer,
    inside,
    mean_word,
    network,
    prompts,
    tokenizer,
)
from measuring import arguments, clock, interleaved, row
from measuring import main as measure

if TYPE_CHECKING:
    from agentrecipes.engines.protocol import Sample
    from agentrecipes.records import Scored

RATE = 1e-6  # so small that weights stay what they were, as far as time is concerned


class Ours:
    """Our iteration, made of what a collecting stage is made of."""

    def __init__(self, shape: Shape) -> None:
        from agentrecipes.components import build

        self.shape = shape
        self.model = network(shape.model)
        self.model.generation_config.eos_token_id = None
        self.words = tokenizer(shape.model, ends=False)
        self.engine = build("engine", "native").start(self.model, self.words)
        self.update = Update(self.model, shape)
        self.asked = [tuple(ids) for ids in prompts(shape)]
        self.version = 0

    def __call__(self) -> None:
        """Sample, score, take one step, hand the weights over."""
        from agentrecipes.training.export import weights

        self.update.gradients(self.scored())
        self.update.step()
        self.version += 1
        self.engine.load(weights(self.update.module), self.version)

    def scored(self) -> list[Scored]:
        """New samples with their rewards."""
        from agentrecipes.engines.protocol import Request

        requests = [
            Request(ids, key=("bench", self.version, attempt), max_tokens=self.shape.completion)
            for attempt, ids in enumerate(self.asked)
        ]
        samples = asyncio.run(self.engine.generate(requests))
        return rewarded(self.asked, samples, self.shape.group, self.words.decode)


def rewarded(
    asked: Sequence[tuple[int, ...]],
    samples: Sequence[Sample],
    group: int,
    decode: Callable[[Sequence[int]], str],
) -> list[Scored]:
    """Trajectories of one turn, with their rewards."""
    from agentrecipes.records import Scored, Stop, Task, Trajectory
    from agentrecipes.testing.packing_door import bare_turn

    scored = []
    for number, (prompt, sample) in enumerate(zip(asked, samples, strict=True)):
        text = decode(sample.ids)
        turn = replace(bare_turn(prompt, sample.ids), logp_rollout=sample.logp, action_text=text)
        name, value = f"t{number // group}", mean_word(text)
        task = Task(name, "train", "?")
        trajectory = Trajectory(task, name, number % group, (turn,), Stop.ANSWERED, text, 0)
        scored.append(Scored(trajectory, {"mean_word": value}, value, (value,)))
    return scored


class Update:
    """One optimizer step on scored trajectories, as a stage with one minibatch takes it."""

    def __init__(self, model: Any, shape: Shape) -> None:
        from agentrecipes.components import build
        from agentrecipes.recipe.schema import Optimizer, Trainer
        from agentrecipes.training import module as training
        from agentrecipes.training import optimizer as optimizers
        from agentrecipes.training.pack import micro_batches

        self.algorithm = build("algorithm", {"name": "dapo", "clip_high": 0.28})
        self.fields = Trainer()
        row_tokens, attempts = shape.prompt + shape.completion, shape.prompts * shape.group
        self.most = micro_batches(attempts, row_tokens, self.fields.tokens_per_batch)
        self.module = training.PolicyModule(model, None)
        adamw = Optimizer(name="adamw", learning_rate=RATE)
        self.optimizer = optimizers.build(adamw, self.module.groups(), self.module.tables())
        self.module.optimizer = self.optimizer
        self.module.update = training.Update(self.algorithm, 1.0, 1, lambda _: 1.0)
        self.module._trainer = SimpleNamespace(world_size=1)  # all that the module asks its own

    def gradients(self, scored: Sequence[Scored]) -> None:
        """Rows, batch, advantages, strips, forward and backward."""
        from agentrecipes.training.batch import collected_batch, computed, packed
        from agentrecipes.training.rows import trajectory_rows

        rows = trajectory_rows([each.trajectory for each in scored])
        batch = collected_batch(rows, scored, 0.0)
        batch = replace(batch, advantage=self.algorithm.advantages(batch))
        wanted = computed(batch, every_row=False)
        used = [number for number, one in enumerate(wanted) if one]
        parts = list(packed(rows, batch, used, trainer=self.fields, most=self.most))
        self.module.train()
        self.optimizer.zero_grad(set_to_none=True)
        for _, micro in parts:
            self.module.training_step(replace(micro, exact=True), 0).backward()

    def step(self) -> None:
        """Clip, step, tell."""
        self.module.configure_gradient_clipping(self.optimizer, self.fields.gradient_clip)
        self.optimizer.step()
        self.module.report()
        self.module.eval()


class Trls:
    """TRL's iteration by a real GRPOTrainer, without the loop around it."""

    def __init__(self, shape: Shape, folder: str, *, compact: bool) -> None:
        import torch

        self.compact = compact
        self.model = network(shape.model)
        more = {"loss_type": "dapo", "epsilon_high": 0.28, "learning_rate": RATE}
        self.trainer = grpo_trainer(self.model, shape, folder, **more)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=RATE, fused=True)
        texts = self.trainer.processing_class.batch_decode(prompts(shape))
        self.asked = [{"prompt": text} for text in texts]

    def __call__(self) -> None:
        """Sample, score, take one step."""
        import torch

        self.gradients()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()

    def gradients(self, completions: list[list[int]] | None = None) -> None:
        """All before the step; of its own samples, or of those that it is given."""
        import trl.trainer.utils as utils

        shipped, sample = utils._use_triton, self.trainer._generate_single_turn
        if self.compact:
            utils._use_triton = lambda *_: True
        if completions is not None:
            self.trainer._generate_single_turn = lambda *_, **__: (completions, None)
        try:
            self.model.train()
            self.optimizer.zero_grad(set_to_none=True)
            self.trainer.training_step(self.model, self.asked, None)
        finally:
            utils._use_triton, self.trainer._generate_single_turn = shipped, sample


HEADS = {"every": False, "scored": True}


def gaps(shape: Shape, folder: str) -> dict[str, float]:
    """By head: how far TRL's gradients are from ours on our samples."""
    mine, found = Ours(shape), {}
    scored = mine.scored()
    mine.update.gradients(scored)
    completions = [list(each.trajectory.turns[0].action) for each in scored]
    for head, compact in HEADS.items():
        theirs = Trls(shape, folder, compact=compact)
        theirs.gradients(completions)
        found[head] = gradient_gap(mine.model, theirs.model)
    return found


def measured(shape: Shape, words: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each of TRL's heads; none for groups of one, whose attempts have no advantage."""
    if shape.group == 1:
        return []
    with tempfile.TemporaryDirectory() as folder:
        gap = gaps(shape, folder)
        made: dict[str, Callable[[], None]] = {"ours": Ours(shape)}
        made |= {head: Trls(shape, folder, compact=HEADS[head]) for head in HEADS}
        taken = interleaved(made, repeats=words.repeats, warmup=2, clock=clock(words))
    tokens = shape.prompts * shape.group * shape.completion
    more = {"tokens": tokens, "optimizer_steps": 1}
    return [row(shape, taken, head, head=head, gradient_gap=gap[head], **more) for head in HEADS]


if __name__ == "__main__":
    inside(__file__)
    measure(arguments(__doc__.splitlines()[0]).parse_args(), measured, ("head", "gradient_gap"))
