"""A Lightning Trainer over a sized dataset that pulls: one epoch is one iteration.

The length is on purpose. Lightning prefetches a batch from an unsized dataset, and asks for the
first one before the epoch has begun: both would be sampled from weights one update too old.
"""

from __future__ import annotations

import logging
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import lightning as L
import torch
from torch.utils.data import DataLoader, IterableDataset

from agentrecipes.recipe.schema import Trainer
from agentrecipes.training import ranks
from agentrecipes.training.batch import MicroBatch
from agentrecipes.training.module import PolicyModule
from agentrecipes.training.shards import Shards, sharded
from agentrecipes.training.strategies import cluster, is_sharded, precision, strategy

UNHELPFUL = (  # warnings about choices that are made on purpose here, or about Lightning's own code
    ".*does not have many workers.*",
    ".*GPU available but not used.*",
    ".*module.s. in eval mode at the start of training.*",
    ".*terableDataset.*",
    ".*isinstance.treespec, LeafSpec.*",
    ".*DeepSpeed handles gradient clipping internally.*",
    ".*all_gather_into_tensor. is deprecated.*",
    ".*srun. command is available on your system.*",  # whoever starts us without it wants that
)


class Pulled(IterableDataset[MicroBatch]):
    """`length` micro-batches an epoch, made when the trainer asks for the first of them."""

    def __init__(self, pull: Callable[[], Iterator[MicroBatch]], length: int) -> None:
        self._pull = pull
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[MicroBatch]:
        return self._pull()


class EpochEnd(L.Callback):
    """Calls back after every optimizer step and every epoch; either may ask to stop."""

    def __init__(self, after_step: Callable[[], bool], after_epoch: Callable[[], bool]) -> None:
        self._after_step = after_step
        self._after_epoch = after_epoch
        self._handler = signal.getsignal(signal.SIGTERM)

    def on_train_start(self, trainer: L.Trainer, *_: Any) -> None:
        """Take SIGTERM back: Lightning's handler would end the run without a checkpoint of ours."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._handler)

    def on_train_batch_end(self, trainer: L.Trainer, *_: Any) -> None:
        if not trainer.fit_loop._should_accumulate() and self._after_step():
            trainer.should_stop = True

    def on_train_epoch_end(self, trainer: L.Trainer, *_: Any) -> None:
        if self._after_epoch():
            trainer.should_stop = True


class Sharding(L.Callback):
    """Tells the shards when DeepSpeed has cut them."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards

    def on_train_start(self, trainer: L.Trainer, *_: Any) -> None:
        self._shards.begin(trainer.strategy.model)


def trainer(fields: Trainer, *, epochs: int, accumulate: int, callback: L.Callback) -> L.Trainer:
    """A Trainer that logs, saves and prints nothing of its own."""
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    with _quiet():
        return L.Trainer(
            accelerator=fields.accelerator,
            plugins=cluster(),
            strategy=strategy(fields),
            devices=fields.devices,
            num_nodes=fields.nodes,
            precision=precision(fields),
            max_epochs=epochs,
            accumulate_grad_batches=accumulate,
            gradient_clip_val=fields.gradient_clip,
            callbacks=[callback],
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            use_distributed_sampler=False,
            num_sanity_val_steps=0,
        )


def fit(made: L.Trainer, module: PolicyModule, batches: Pulled, *, fields: Trainer) -> None:
    """Run the epochs. Batches are made in this process: workers would sample stale weights.

    Raises:
        EngineError: another rank has ended.
    """
    if not is_sharded(fields):
        with ranks.Lost():
            _fit(made, module, batches)
        return
    module.context = precision_context(fields)
    with ranks.Lost(), sharded(module) as shards:
        cast("Any", made).callbacks.append(Sharding(shards))
        _fit(made, module, batches)


def _fit(made: L.Trainer, module: PolicyModule, batches: Pulled) -> None:
    loader: DataLoader[MicroBatch] = DataLoader(batches, batch_size=None, num_workers=0)
    with _quiet():
        try:
            made.fit(module, loader)
        except SystemExit as end:
            if isinstance(end.__context__, KeyboardInterrupt):  # how Lightning ends a Ctrl-C
                raise KeyboardInterrupt from None
            raise


def precision_context(fields: Trainer) -> Callable[[], Any]:
    """The context of forward passes outside the Trainer: the precision that it uses itself."""
    if fields.precision == "bf16":
        kind = "cuda" if torch.cuda.is_available() and fields.accelerator != "cpu" else "cpu"
        return lambda: torch.autocast(kind, dtype=torch.bfloat16)
    return lambda: torch.autocast("cpu", enabled=False)


@contextmanager
def _quiet() -> Iterator[None]:
    """Warnings that help nobody are not shown."""
    with warnings.catch_warnings():
        for about in UNHELPFUL:
            warnings.filterwarnings("ignore", message=about)
        yield
