"""The policy's weights: as a stream for engines, and as a folder that transformers loads."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentrecipes.training.module import PolicyModule

if TYPE_CHECKING:
    from torch import Tensor


def weights(module: PolicyModule) -> Iterator[tuple[str, Tensor]]:
    """(Hugging Face name, tensor) of the whole policy, ``lm_head.weight`` included, tied or not."""
    model: Any = module.model
    merged = hasattr(model, "merge_adapter")
    if merged:
        model.merge_adapter()
    causal = model.get_base_model() if merged else model
    try:
        for name, tensor in causal.state_dict().items():
            if "lora_" not in name:
                yield name.replace(".base_layer", ""), tensor.detach()
    finally:
        if merged:
            model.unmerge_adapter()


def save_model(module: PolicyModule, tokenizer: Any, folder: Path) -> None:
    """Write the model (or its adapter) and its tokenizer to `folder`, replacing what is there."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    module.model.save_pretrained(temporary, safe_serialization=True)
    tokenizer.save_pretrained(temporary)
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)
