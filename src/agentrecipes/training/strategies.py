"""Strategies by name: what a recipe says, as what Lightning takes."""

from __future__ import annotations

import logging
import os
import warnings
from importlib.util import find_spec
from typing import Any

from agentrecipes.errors import MissingExtra, RecipeError
from agentrecipes.recipe.schema import Trainer

OWN_RANK = "AGENTRECIPES_RANK"  # in the environment of a rank that this package has started


def is_sharded(fields: Trainer) -> bool:
    """Whether the strategy cuts the optimizer's state, and more, into pieces."""
    return fields.strategy.startswith("deepspeed")


def uses_gpu(fields: Trainer) -> bool:
    """Whether training runs on a GPU: asked for, or there and not refused."""
    import torch

    return fields.accelerator != "cpu" and torch.cuda.is_available()


def require(fields: Trainer) -> None:
    """Hold a recipe's strategy to what is here, before anything is opened.

    Raises:
        MissingExtra: a DeepSpeed strategy without DeepSpeed.
        RecipeError: a GPU, or more of them, than the machine has; FSDP without one.
    """
    import torch

    if is_sharded(fields) and find_spec("deepspeed") is None:
        raise MissingExtra(
            f"trainer.strategy: {fields.strategy!r} needs DeepSpeed. "
            f"Install it with: pip install 'agentrecipes[deepspeed]'."
        )
    found = torch.cuda.device_count()
    if fields.accelerator == "gpu" and not found:
        _refuse("accelerator", "this machine has no GPU that PyTorch can use", "Write `cpu`.")
    if fields.strategy == "fsdp" and not uses_gpu(fields):
        hint = "Write `deepspeed_3`, which runs on a CPU too."
        _refuse("strategy", "'fsdp' needs GPUs, and none is used here", hint)
    if uses_gpu(fields) and fields.devices > found:
        hint = f"Write `devices: {found}`, or `accelerator: cpu`."
        _refuse("devices", f"{fields.devices} GPUs are asked for, but {found} are here", hint)


def _refuse(field: str, found: str, hint: str) -> None:
    raise RecipeError.about("not_here", found, hint, path=f"trainer.{field}")


def strategy(fields: Trainer) -> Any:
    """The Lightning strategy that the recipe names."""
    if is_sharded(fields):
        return _deepspeed(fields)
    if fields.strategy == "single" or fields.devices * fields.nodes == 1:
        return "auto"
    return "ddp" if fields.strategy == "auto" else fields.strategy


def precision(fields: Trainer) -> Any:
    """Lightning's word for the precision.

    Under DeepSpeed the weights stay in 32 bits and the passes are autocast by the module, as under
    every other strategy; DeepSpeed's own bf16 would train a rounded copy of the weights.
    """
    return "bf16-mixed" if fields.precision == "bf16" and not is_sharded(fields) else "32-true"


def cluster() -> Any:
    """Where Lightning learns its rank; None lets it ask torchrun, SLURM or Kubernetes itself."""
    if OWN_RANK not in os.environ:
        return None
    from lightning.fabric.plugins.environments.lightning import LightningEnvironment

    return [LightningEnvironment()]


def _deepspeed(fields: Trainer) -> Any:
    from lightning.pytorch.plugins.precision.deepspeed import DeepSpeedPrecision
    from lightning.pytorch.strategies import DeepSpeedStrategy

    class Exact(DeepSpeedPrecision):
        """Hands batches on as they are, and divides the loss by the micro-batches once."""

        def convert_input(self, data: Any) -> Any:
            return data  # returns stay in 64 bits, and our records are frozen

        def backward(self, tensor: Any, model: Any, optimizer: Any, *_: Any, **__: Any) -> None:
            # Lightning has divided by their number, and DeepSpeed would do so again. A clipped
            # AdamW step hides that: it depends on the direction of the gradient alone.
            model.trainer.model.backward(tensor, scale_wrt_gas=False)

    kind = DeepSpeedStrategy if uses_gpu(fields) else _on_cpu()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries that DeepSpeed imports
        made: Any = kind(
            stage=int(fields.strategy.removeprefix("deepspeed_")),
            offload_optimizer=fields.offload in ("optimizer", "parameters"),
            offload_parameters=fields.offload == "parameters",
            logging_batch_size_per_gpu=1,
            logging_level=logging.ERROR,
            precision_plugin=Exact("32-true"),
        )
    made.config["zero_force_ds_cpu_optimizer"] = (
        False  # the optimizer is the recipe's, offloaded too
    )
    return made


def _on_cpu() -> Any:
    """DeepSpeed's strategy without its demand for CUDA: ZeRO over gloo."""
    from lightning.fabric.utilities.seed import reset_seed
    from lightning.pytorch.strategies import DeepSpeedStrategy

    class CPUDeepSpeedStrategy(DeepSpeedStrategy):
        """ZeRO 1, 2 and 3 on CPUs. For recipes that ask for a CPU alone."""

        def __init__(self, **options: Any) -> None:
            os.environ.setdefault("DS_ACCELERATOR", "cpu")  # before the first `import deepspeed`
            super().__init__(process_group_backend="gloo", **options)
            import deepspeed

            deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # it would be compiled

        def setup_environment(self) -> None:
            super(DeepSpeedStrategy, self).setup_environment()  # DDP's, which asks for no CUDA

        def setup_distributed(self) -> None:
            reset_seed()
            self.set_world_ranks()
            self._init_deepspeed_distributed()

        def _setup_model_and_optimizer(
            self, model: Any, optimizer: Any, lr_scheduler: Any = None
        ) -> tuple[Any, Any]:
            import deepspeed

            engine, own, _, _ = deepspeed.initialize(
                config=self.config,
                model=model,
                optimizer=optimizer,
                lr_scheduler=lr_scheduler,
                model_parameters=[p for p in model.parameters() if p.requires_grad],
                dist_init_required=False,
            )
            return engine, own

    return CPUDeepSpeedStrategy
