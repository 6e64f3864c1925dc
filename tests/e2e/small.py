"""The default recipe, made small: the whole path in a few seconds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from agentrecipes.compile import Experiment, RunPlace, compile_recipe
from agentrecipes.components import add_folder
from agentrecipes.experiment import run
from agentrecipes.recipe.load import Recipe, load
from agentrecipes.recipe.schema import Stage
from agentrecipes.training.collecting import Collector
from agentrecipes.training.position import Position, Sampler
from agentrecipes.training.stage import StageRun

add_folder(Path(__file__).parent / "parts")
RECIPE = Path(__file__).parents[2] / "recipes" / "rag_r1.yaml"
SMALL = [
    "tracking.backend=none",
    "model.layers=1",
    "rollout.tasks=4",
    "rollout.group_size=4",
    "rollout.tokens=128",
    "rollout.tokens_per_turn=24",
    "evaluation.tasks=6",
    "evaluation.every=2",
    "tripwires.no_signal.action=warn",
    "tripwires.dead_type.action=warn",
    "stages.imitate.steps=6",
    "stages.imitate.demonstrations.count=40",
    "stages.imitate.trainer.checkpoint_every=4",
    "stages.imitate.trainer.rows_per_step=8",
    "stages.reinforce.iterations=3",
    "stages.reinforce.trainer.checkpoint_every=1",
    "stages.reinforce.trainer.minibatches=1",
]


def small(*overrides: str) -> Recipe:
    return load(RECIPE, [*SMALL, *overrides])


def experiment(recipe: Recipe, folder: Path) -> Experiment:
    return compile_recipe(recipe, RunPlace(folder.parent, folder))


def trained(folder: Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The summary of a small run in `folder`."""
    return run(experiment(small(*overrides), folder))


class Quiet:
    """An observer that wants nothing, and remembers what each iteration said."""

    def __init__(self) -> None:
        self.iterations: list[Any] = []
        self.figures: list[dict[str, float]] = []

    def wants_stop(self) -> bool:
        return False

    def step(self, step, figures) -> None: ...

    def iteration(self, after, collected, figures) -> None:
        self.iterations.append(collected)
        self.figures.append(dict(figures))

    def checkpoint(self, position) -> None: ...


def ready(recipe: Recipe, folder: Path, stage: int = 1) -> tuple[Experiment, Stage, Sampler]:
    """A run that stands before a stage, by default the collecting one, on an untrained policy."""
    run = experiment(recipe, folder)
    fields = recipe.stage(stage)
    run.policy.prepare(fields, folder / "reference.pt")
    engine = fields.rollout.engine.start(run.policy.module.model, run.policy.tokenizer)
    return run, fields, Sampler(engine, run.policy.chat, recipe.seed, fields.name)


def collector(folder: Path, *overrides: str) -> tuple[Collector, Stage, Experiment]:
    """What collects the iterations of the small recipe's collecting stage."""
    run, fields, sampler = ready(small(*overrides), folder / "run")
    return Collector(sampler, run.policy.module, torch.no_grad), fields, run


def weights_after(
    folder: Path,
    *overrides: str,
    algorithm: Any = None,
    observer: Quiet | None = None,
    stage: int = 1,
) -> dict[str, torch.Tensor]:
    """The weights after that stage alone, with rewards that an untrained policy spreads.

    `algorithm` stands in for the recipe's. The optimizer is gradient descent.
    """
    given = ["rewards=[spread]", "stages.reinforce.optimizer.name=sgd"]
    run, fields, sampler = ready(small(*given, *overrides), folder, stage)
    if algorithm is not None:
        fields = fields.model_copy(update={"algorithm": algorithm})
    StageRun(lambda _: fields, run.policy.module, sampler, observer or Quiet()).run(Position())
    return {name: tensor.clone() for name, tensor in run.policy.module.model.state_dict().items()}


def weights_before(folder: Path, *overrides: str) -> dict[str, torch.Tensor]:
    """The weights of the untrained policy."""
    return experiment(small(*overrides), folder).policy.module.model.state_dict()
