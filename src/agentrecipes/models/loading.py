"""Where a model's files are, and how they are read: safetensors only, and never code of theirs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agentrecipes.errors import MissingExtra, RecipeError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

FOLDERS = (
    "AGENTRECIPES_MODELS"  # environment variable: a folder of models that comes before the hub
)


@dataclass(frozen=True, slots=True)
class Files:
    """A hub name or a folder, as transformers takes it."""

    path: str
    revision: str | None = None

    @property
    def local(self) -> bool:
        return Path(self.path).is_dir()


def locate(path: str, revision: str | None = None) -> Files:
    """The folder `path` under ``AGENTRECIPES_MODELS``, else the folder `path`, else the hub."""
    models = os.environ.get(FOLDERS)
    if models and not Path(path).is_absolute() and (Path(models) / path).is_dir():
        return Files(str(Path(models) / path))
    if Path(path).expanduser().is_dir():
        return Files(str(Path(path).expanduser()))
    return Files(path, revision)


def read_model(
    files: Files,
    *,
    dtype: Literal["fp32", "bf16"],
    attention: str,
    quantize: Literal["nf4"] | None = None,
) -> PreTrainedModel:
    """The causal language model on the CPU; `quantize`: its linear layers in four bits.

    Raises:
        RecipeError: it is not there, or its weights are not safetensors.
        MissingExtra: bitsandbytes is not installed.
    """
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    if files.local:
        require_safetensors(Path(files.path))
    numbers = {"fp32": torch.float32, "bf16": torch.bfloat16}[dtype]
    more: dict[str, Any] = {} if quantize is None else _four_bits(numbers)
    try:
        model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
            files.path,
            revision=files.revision or "main",
            dtype=numbers,
            attn_implementation=attention,
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=files.local,
            **more,
        )
    except (OSError, ValueError) as error:
        raise _not_there(files, error) from error
    return model


def missing_quant() -> str | None:
    """What is to be said where bitsandbytes is not installed; None where it is."""
    if find_spec("bitsandbytes") is not None:
        return None
    return "model.quantize needs bitsandbytes. Install it with: pip install 'agentrecipes[quant]'"


def _four_bits(numbers: Any) -> dict[str, Any]:
    """How transformers reads weights into nf4, computing in the type `numbers`."""
    if (missing := missing_quant()) is not None:
        raise MissingExtra(missing)
    from transformers import BitsAndBytesConfig

    config = BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=numbers
    )
    return {"quantization_config": config, "device_map": {"": "cpu"}}


def require_safetensors(folder: Path) -> None:
    """Refuse a folder whose weights could only be unpickled, which could run code.

    Raises:
        RecipeError: no file in `folder` ends in ``.safetensors``.
    """
    if not list(folder.glob("*.safetensors")):
        raise RecipeError(
            f"model.path: {folder} has no *.safetensors. Save the model there with save_pretrained"
        )


def read_tokenizer(files: Files) -> PreTrainedTokenizerFast:
    """The tokenizer; texts come back from it as they went in.

    Raises:
        RecipeError: it is not there.
    """
    from transformers import AutoTokenizer

    try:
        found: Any = AutoTokenizer.from_pretrained(
            files.path,
            revision=files.revision or "main",
            trust_remote_code=False,
            local_files_only=files.local,
        )
    except (OSError, ValueError) as error:
        raise _not_there(files, error) from error
    tokenizer: PreTrainedTokenizerFast = found
    tokenizer.clean_up_tokenization_spaces = False
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _not_there(files: Files, error: Exception) -> RecipeError:
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return RecipeError(
        f"model.path: {files.path!r} cannot be loaded: {reason.rstrip('.')}. Write a name of the "
        f"hub, a folder, or a folder's name under {FOLDERS}"
    )
