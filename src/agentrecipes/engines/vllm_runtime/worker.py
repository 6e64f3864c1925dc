"""Inside a vLLM worker: new weights, and what model it has; vLLM mixes the class in."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

# The extra arguments of a request.
SEED = "ar_seed"  # derived from its key
LIMIT = "ar_limit"  # numbers of its stream that it may need
TEMPERATURE = "ar_temperature"  # 0 is greedy
TOP_P = "ar_top_p"


class Weights:
    """What `vllm` and `vllm_server` call in every worker, by name."""

    model_runner: Any
    vllm_config: Any

    def ar_load(self, pairs: Iterable[tuple[str, Tensor]]) -> None:
        """Take weights that are at hand in this process."""
        self.model_runner.reload_weights(weights_iterator=iter(pairs))

    def ar_load_file(self, path: str) -> None:
        """Take the weights of a safetensors file."""
        from safetensors import safe_open

        with safe_open(Path(path), framework="pt") as held:
            self.ar_load((name, held.get_tensor(name)) for name in held.keys())  # noqa: SIM118

    def ar_facts(self) -> dict[str, Any]:
        """What model is served, in numbers that another one would hardly share."""
        config = self.vllm_config.model_config.hf_config.get_text_config()
        return model_facts(config)


def model_facts(config: Any) -> dict[str, Any]:
    """The shape of a Hugging Face causal model: its kind, layers, width and vocabulary."""
    names = ("model_type", "num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size")
    return {name: getattr(config, name, None) for name in names}
