"""One update on the same recorded attempts, ours beside TRL's: time, memory and gradients.

    python bench/trainer_vs_trl.py            # all shapes; the first call installs TRL beside us
    python bench/trainer_vs_trl.py --quick    # the small shapes, in minutes
    python bench/trainer_vs_trl.py --json
    python bench/trainer_vs_trl.py --precision bf16   # or fast: float32 as the library likes it

An update is: zero gradients, forward, backward, clip at 1, AdamW. The loss is DAPO's, on policy.
Ours is charged with packing, TRL's not with padding. Gradients are compared before the first step.
Memory is the peak of two updates above what stood before them, each side in a process of its own.
`head` tells how TRL computes its logits: at every position, as shipped on a CPU, or at scored ones.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from beside_trl import Attempts, Shape, attempts, gradient_gap, inside, network
from measuring import PRECISIONS, arguments, clock, interleaved, row
from measuring import main as measure


def computed(loss: Callable[[], Any], precision: str) -> Callable[[], Any]:
    """The loss, with its matrix products in `precision`."""
    import torch

    def lower() -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return loss()

    torch.set_float32_matmul_precision("medium" if precision == "fast" else "highest")
    return lower if precision == "bf16" else loss


def update(model: Any, loss: Callable[[], Any]) -> Callable[[], Any]:
    """A whole update of `model`; both sides use the same optimizer and clipping."""
    import torch

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def ours(model: Any, recorded: Attempts) -> Callable[[], Any]:
    """Our loss: rows to a strip to log-probabilities to DAPO, as a collecting stage does it."""
    import torch

    from agentrecipes.components import build
    from agentrecipes.records import Scored, Stop, Task, Trajectory
    from agentrecipes.testing.packing_door import bare_turn
    from agentrecipes.training.batch import collected_batch, cut
    from agentrecipes.training.module import PolicyModule
    from agentrecipes.training.rows import trajectory_rows

    def trajectory(number: int) -> Trajectory:
        turn = bare_turn(recorded.prompts[number], recorded.completions[number])
        task = Task("t", "train", "?")
        return Trajectory(task, "g", number, (turn,), Stop.ANSWERED, None, 0)

    module = PolicyModule(model, None)
    algorithm = build("algorithm", {"name": "dapo", "clip_high": 0.28})
    trajectories = [trajectory(n) for n in range(len(recorded.prompts))]
    scored = [Scored(each, {}, 0.0, (0.0,)) for each in trajectories]

    def loss() -> Any:
        rows = trajectory_rows(trajectories)
        batch = collected_batch(rows, scored, 0.0)
        weight = torch.tensor(recorded.advantages)[:, None]
        batch = replace(batch, advantage=weight * batch.action_mask)
        micro = cut(rows, batch, range(len(rows)))
        out = module(micro.strip)
        return algorithm.loss(out, replace(micro.batch, logp_old=out.logp.detach())).total

    return loss


def trls(model: Any, recorded: Attempts, *, compact: bool, folder: str) -> Callable[[], Any]:
    """TRL's loss, by a real GRPOTrainer on inputs as its own generation would hand them over."""
    import torch
    import trl.trainer.utils as utils
    from trl import GRPOConfig, GRPOTrainer

    from agentrecipes.models.tiny import Tiny
    from datasets import Dataset

    group = recorded.prompts.count(recorded.prompts[0])
    longest = max(map(len, recorded.completions))
    settings = GRPOConfig(
        output_dir=folder,
        use_cpu=True,
        bf16=False,
        beta=0.0,
        loss_type="dapo",
        epsilon_high=0.28,
        num_iterations=1,
        num_generations=max(group, 2),
        per_device_train_batch_size=len(recorded.prompts),
        gradient_accumulation_steps=1,
        gradient_checkpointing=False,
        max_completion_length=longest,
        report_to=[],
    )
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        args=settings,
        train_dataset=Dataset.from_list([{"prompt": "x"}] * len(recorded.prompts)),
        processing_class=Tiny().tokenizer(),
    )
    trainer.current_gradient_accumulation_steps = 1
    completions = torch.zeros(len(recorded.prompts), longest, dtype=torch.long)
    mask = torch.zeros_like(completions)
    for number, tokens in enumerate(recorded.completions):
        completions[number, : len(tokens)] = torch.tensor(tokens)
        mask[number, : len(tokens)] = 1
    prompts = torch.tensor(recorded.prompts)
    inputs = {
        "prompt_ids": prompts,
        "prompt_mask": torch.ones_like(prompts),
        "completion_ids": completions,
        "completion_mask": mask,
        "advantages": torch.tensor(recorded.advantages),
        "num_items_in_batch": mask.sum(),
    }
    shipped = utils._use_triton
    model.train()

    def loss() -> Any:
        utils._use_triton = (lambda *_: True) if compact else shipped
        try:
            return trainer.compute_loss(model, dict(inputs))
        finally:
            utils._use_triton = shipped

    return loss


def sides(shape: Shape, folder: str) -> dict[str, tuple[Any, Callable[[], Any]]]:
    """Each side's model and loss; the same weights, the same attempts."""
    recorded = attempts(shape)
    made: dict[str, tuple[Any, Callable[[], Any]]] = {}
    model = network(shape.model)
    made["ours"] = (model, ours(model, recorded))
    for head, compact in (("every", False), ("scored", True)):
        model = network(shape.model)
        made[head] = (model, trls(model, recorded, compact=compact, folder=folder))
    return made


def measured(shape: Shape, words: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each way of TRL's."""
    names = ("ours", "every", "scored")
    peaks = {name: peak(shape, name, words) for name in names}  # before the models are in memory
    gaps, taken = timed(shape, words)
    rows = []
    for head in names[1:]:
        more: dict[str, Any] = {"precision": words.precision, "gradient_gap": gaps[head]}
        more |= {"ours_peak_bytes": peaks["ours"], "trl_peak_bytes": peaks[head]}
        more["memory_ratio"] = peaks[head] / max(peaks["ours"], 1)
        rows.append(row(shape, taken, head, head=head, **more))
    return rows


def timed(
    shape: Shape, words: argparse.Namespace
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """By side: the largest difference of its gradients to ours, and the seconds of its updates."""
    with tempfile.TemporaryDirectory() as folder:
        made = {
            name: (model, computed(loss, words.precision))
            for name, (model, loss) in sides(shape, folder).items()
        }
        for _, loss in made.values():
            loss().backward()
        gaps = {name: gradient_gap(made["ours"][0], model) for name, (model, _) in made.items()}
        updates = {name: update(*side) for name, side in made.items()}
        return gaps, interleaved(updates, repeats=words.repeats, clock=clock(words))


def peak(shape: Shape, side: str, asked: argparse.Namespace) -> int:
    """Bytes that one side's updates add to its process, in a process of its own."""
    words = [sys.executable, __file__, "--peak", side, json.dumps(asdict(shape))]
    words += ["--threads", str(asked.threads), "--precision", asked.precision]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])


def print_peak(side: str, shape: Shape, precision: str) -> None:
    """The process of `peak`: two updates, the first of which makes the optimizer's state."""
    with tempfile.TemporaryDirectory() as folder:
        recorded, model = attempts(shape), network(shape.model)
        if side == "ours":
            loss = ours(model, recorded)
        else:
            loss = trls(model, recorded, compact=side == "scored", folder=folder)
        step = update(model, computed(loss, precision))
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        before = resident("VmRSS")
        step()
        step()
        print(resident("VmHWM") - before)


def resident(name: str) -> int:
    """Bytes of a line of this process's status; Linux only."""
    [line] = [each for each in Path("/proc/self/status").read_text().splitlines() if name in each]
    return int(line.split()[1]) * 1024


def main() -> None:
    """Measure; or be the process that tells one side's peak."""
    import torch

    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32", help="of both sides")
    parser.add_argument("--peak", nargs=2, help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.peak:
        torch.set_num_threads(words.threads)
        print_peak(words.peak[0], Shape(**json.loads(words.peak[1])), words.precision)
        return
    extra = ("precision", "head", "gradient_gap")
    measure(words, measured, (*extra, "ours_peak_bytes", "trl_peak_bytes", "memory_ratio"))


if __name__ == "__main__":
    inside(__file__)
    main()
