"""The policy's weights: as a stream for engines, and as a folder that transformers loads."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from agentrecipes.models.run import ADAPTER, Run
from agentrecipes.training.module import PolicyModule

if TYPE_CHECKING:
    from torch import Tensor


def weights(module: PolicyModule) -> Iterator[tuple[str, Tensor]]:
    """(Hugging Face name, tensor) of the whole policy, ``lm_head.weight`` included, tied or not.

    A layer with an adapter is merged with it only until the next tensor is asked for: whoever
    wants to keep a tensor copies it. Weights of four bits come out as what they stand for.
    """
    model: Any = module.whole
    causal = model.get_base_model() if hasattr(model, "merge_adapter") else model
    whole = causal.state_dict(keep_vars=True)
    for name, tensor in whole.items():
        layer, adapted, own = name.partition(".base_layer.")
        if name.rpartition(".weight.")[0] + ".weight" in whole:
            continue  # how a quantised weight is to be read
        if getattr(tensor, "quant_state", None) is not None:
            beside = causal.get_submodule(layer) if adapted else None
            yield name.replace(".base_layer.", "."), _read_out(tensor, beside)
        elif adapted:
            with _merged(causal.get_submodule(layer)):
                yield f"{layer}.{own}", tensor.detach()
        elif "lora_" not in name:
            yield name, tensor.detach()


@torch.no_grad()
def _read_out(weight: Any, beside: Any) -> Tensor:
    """What a quantised weight stands for, with what the adapter adds to it."""
    from bitsandbytes.functional import dequantize_4bit

    found: Tensor = dequantize_4bit(weight.data, weight.quant_state)
    if beside is not None:
        found = found + sum(beside.get_delta_weight(name) for name in beside.active_adapters)
    return found.detach()


@contextmanager
def _merged(layer: Any) -> Iterator[None]:
    """The layer with its adapter in its weights; afterwards they are what they were, to the bit.

    Subtracting the adapter again would leave rounding behind, more with every iteration.
    """
    frozen = dict(layer.base_layer.named_parameters())
    kept = {name: tensor.detach().clone() for name, tensor in frozen.items()}
    layer.merge()
    try:
        yield
    finally:
        layer.unmerge()
        for name, tensor in frozen.items():
            tensor.data.copy_(kept[name])


def save_model(module: PolicyModule, tokenizer: Any, folder: Path) -> None:
    """Write the model (or its adapter) and its tokenizer to `folder`, replacing what is there.

    Raises:
        OSError: they cannot be written; what stood there stays.
    """
    _save(module.model, tokenizer, folder)


def _save(model: Any, tokenizer: Any, folder: Path) -> None:
    from transformers.utils import logging

    logging.disable_progress_bar()
    with _appearing(folder) as temporary:
        model.save_pretrained(temporary, safe_serialization=True)
        tokenizer.save_pretrained(temporary)


@contextmanager
def _appearing(folder: Path) -> Iterator[Path]:
    """A new folder to fill, which takes the place of `folder` only when all is written."""
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        yield temporary
    except Exception as error:  # a full disk is a SafetensorError, or an Exception of tokenizers
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, OSError):
            raise
        raise OSError(str(error)) from error
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)


def export_model(model: Path, target: Path, *, merge: bool) -> int:
    """Copy a run's model (or adapter) with its tokenizer to the folder `target`; its bytes.

    With `merge`, an adapter is merged into the weights that it stands beside, which are read in
    full precision, also where training read them quantised. A model without adapter is copied.

    Raises:
        RecipeError: the weights beside the adapter cannot be loaded.
        OSError: the folder cannot be written; nothing is left of it.
    """
    if merge and (model / ADAPTER).is_file():
        part = Run(path=str(model))
        adapted: Any = part.build(0)
        _save(adapted.merge_and_unload(), part.tokenizer(), target)
    else:
        with _appearing(target) as temporary:
            shutil.copytree(model, temporary, dirs_exist_ok=True)
    return sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
