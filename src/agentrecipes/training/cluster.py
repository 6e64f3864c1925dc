"""Where a rank comes from: this package's own launch, torchrun, Kubernetes or SLURM."""

from __future__ import annotations

from collections.abc import Mapping

from agentrecipes.errors import RecipeError
from agentrecipes.recipe.load import Recipe
from agentrecipes.training import ranks, strategies

NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
INTERACTIVE = ("bash", "interactive")  # names of SLURM jobs in which somebody types


def devices(recipe: Recipe) -> int:
    """How many processes a recipe asks for, on all machines together.

    Raises:
        RecipeError: its stages ask for different numbers; processes are started once.
    """
    wanted = {(each.trainer.devices, each.trainer.nodes) for each in recipe.stages}
    if len(wanted) > 1:
        found = "the stages ask for different numbers of devices, but ranks are started once"
        hint = "Write `trainer.devices` and `trainer.nodes` at the top level alone."
        raise RecipeError.about("contradiction", found, hint, path="trainer.devices")
    [(own, nodes)] = wanted
    return own * nodes


def rank_environment(environ: Mapping[str, str]) -> dict[str, str] | None:
    """Number and address of the rank that this process is; None where it is no rank."""
    if all(name in environ for name in NEEDED) and environ["WORLD_SIZE"] != "1":
        return {name: environ[name] for name in NEEDED}
    if _in_slurm_step(environ):
        from lightning.fabric.plugins.environments.slurm import SLURMEnvironment

        slurm = SLURMEnvironment()
        return {
            "RANK": environ["SLURM_PROCID"],
            "WORLD_SIZE": environ["SLURM_NTASKS"],
            "MASTER_ADDR": slurm.main_address,
            "MASTER_PORT": str(slurm.main_port),
        }
    return None


def _in_slurm_step(environ: Mapping[str, str]) -> bool:
    """Whether srun started this process as one of several tasks."""
    if not {"SLURM_STEP_ID", "SLURM_PROCID", "SLURM_NTASKS"} <= environ.keys():
        return False
    return environ["SLURM_NTASKS"] != "1" and environ.get("SLURM_JOB_NAME") not in INTERACTIVE


def prepared(recipe: Recipe, environ: Mapping[str, str]) -> bool:
    """Whether this process carries the recipe out itself; False: its ranks must be started first.

    A process that is a rank meets the others here, and they hold each other to one recipe.

    Raises:
        RecipeError: what the recipe asks for is not here, or the ranks do not agree about it.
        MissingExtra: a library for it is not installed.
        EngineError: the ranks do not find each other.
    """
    wanted = devices(recipe)
    for stage in recipe.stages:
        strategies.require(stage.trainer)
    own = rank_environment(environ)
    if own is None:
        if recipe.stages[0].trainer.nodes > 1:
            found = "several machines are asked for, but this process was started alone"
            hint = "Start it on each of them with torchrun or srun."
            raise RecipeError.about("not_here", found, hint, path="trainer.nodes")
        return wanted == 1
    if int(own["WORLD_SIZE"]) != wanted:
        found = f"{own['WORLD_SIZE']} ranks were started, but the recipe asks for {wanted}"
        hint = "`trainer.devices` times `trainer.nodes` must be their number."
        raise RecipeError.about("contradiction", found, hint, path="trainer.devices")
    ranks.join(own, gpu=strategies.uses_gpu(recipe.stages[0].trainer))
    ranks.agreed("the recipe", recipe.hash)
    ranks.agreed("the seed", recipe.seed)
    return True
