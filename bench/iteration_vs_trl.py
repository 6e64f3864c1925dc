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
There is no gap between gradients to report: each side trains on what it sampled itself
(trainer_vs_trl.py compares them on recorded attempts).
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from beside_trl import (
    Shape,
    arguments,
    grpo_trainer,
    inside,
    interleaved,
    mean_word,
    network,
    prompts,
    report,
    row,
    shapes,
    tokenizer,
    told,
    wait_for_quiet,
)

if TYPE_CHECKING:
    from agentrecipes.engines.protocol import Sample
    from agentrecipes.records import Scored

RATE = 1e-6  # so small that weights stay what they were, as far as time is concerned


def ours(shape: Shape) -> Callable[[], float]:
    """Our iteration, made of what a collecting stage is made of; gives the mean reward."""
    from agentrecipes.components import build
    from agentrecipes.engines.protocol import Request
    from agentrecipes.training.export import weights

    model = network(shape.model)
    model.generation_config.eos_token_id = None
    words = tokenizer(shape.model, ends=False)
    engine = build("engine", "native").start(model, words)
    update = Updating(model, shape)
    asked = [tuple(ids) for ids in prompts(shape)]
    version = 0

    def iteration() -> float:
        nonlocal version
        requests = [
            Request(ids, key=("bench", version, attempt), max_tokens=shape.completion)
            for attempt, ids in enumerate(asked)
        ]
        samples = asyncio.run(engine.generate(requests))
        scored = rewarded(asked, samples, shape.group, words.decode)
        update(scored)
        version += 1
        engine.load(weights(update.module), version)
        return sum(each.total or 0.0 for each in scored) / len(scored)

    return iteration


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


class Updating:
    """One optimizer step on scored trajectories, as a stage with one minibatch takes it."""

    def __init__(self, model: Any, shape: Shape) -> None:
        from agentrecipes.components import build
        from agentrecipes.recipe.schema import Optimizer, Trainer
        from agentrecipes.training import optimizer as optimizers
        from agentrecipes.training.module import PolicyModule, Update
        from agentrecipes.training.pack import micro_batches

        self.algorithm = build("algorithm", {"name": "dapo", "clip_high": 0.28})
        self.fields = Trainer()
        row_tokens = shape.prompt + shape.completion
        attempts = shape.prompts * shape.group
        self.most = micro_batches(attempts, row_tokens, self.fields.tokens_per_batch)
        self.module = PolicyModule(model, None)
        adamw = Optimizer(name="adamw", learning_rate=RATE)
        self.optimizer = optimizers.build(adamw, self.module.groups(), self.module.tables())
        self.module.optimizer = self.optimizer
        self.module.update = Update(self.algorithm, 1.0, 1, lambda _: 1.0)
        self.alone = SimpleNamespace(world_size=1)  # what the module asks its Trainer
        self.module._trainer = self.alone

    def __call__(self, scored: Sequence[Scored]) -> None:
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
        self.module.configure_gradient_clipping(self.optimizer, self.fields.gradient_clip)
        self.optimizer.step()
        self.module.report()
        self.module.eval()


def trls(shape: Shape, folder: str, *, compact: bool) -> Callable[[], float]:
    """TRL's iteration by a real GRPOTrainer, without the loop around it; gives the mean reward."""
    import torch
    import trl.trainer.utils as utils

    model = network(shape.model)
    trainer = grpo_trainer(
        model, shape, folder, loss_type="dapo", epsilon_high=0.28, learning_rate=RATE
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, fused=True)
    texts = trainer.processing_class.batch_decode(prompts(shape))
    asked = [{"prompt": text} for text in texts]
    shipped = utils._use_triton

    def iteration() -> float:
        utils._use_triton = (lambda *_: True) if compact else shipped
        try:
            model.train()
            optimizer.zero_grad(set_to_none=True)
            trainer.training_step(model, asked, None)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        finally:
            utils._use_triton = shipped
        return float(trainer._metrics["train"]["reward"][-1])

    return iteration


def sides(shape: Shape, folder: str) -> dict[str, Callable[[], float]]:
    """Both sides, TRL's with both heads, all on the same weights and prompts."""
    return {
        "ours": ours(shape),
        "every": trls(shape, folder, compact=False),
        "scored": trls(shape, folder, compact=True),
    }


def measured(shape: Shape, repeats: int) -> list[dict[str, Any]]:
    """A row for each of TRL's heads."""
    with tempfile.TemporaryDirectory() as folder:
        made = sides(shape, folder)
        rewards = {name: iteration() for name, iteration in made.items()}
        taken = interleaved(made, repeats=repeats)
    tokens = shape.prompts * shape.group * shape.completion
    return [
        row(
            shape,
            taken,
            head,
            head=head,
            tokens=tokens,
            ours_reward=rewards["ours"],
            trl_reward=rewards[head],
        )
        for head in ("every", "scored")
    ]


def measurements(words: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The rows of all shapes with groups; an attempt alone has no advantage."""
    for shape in shapes(words):
        if shape.group > 1:
            yield from measured(shape, words.repeats)


def main() -> None:
    """Measure, print a table or JSON."""
    words = arguments(__doc__.splitlines()[0]).parse_args()
    import torch

    torch.set_num_threads(words.threads)
    wait_for_quiet(force=words.force)
    extra = ("head", "ours_reward", "trl_reward")
    report(measurements(words), lambda row: told(row, *extra), as_json=words.json)


if __name__ == "__main__":
    inside(__file__)
    main()
