"""The model that another run left behind."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agentrecipes.components import Component, component
from agentrecipes.errors import Problem
from agentrecipes.models.loading import (
    Files,
    locate,
    read_model,
    read_tokenizer,
    require_safetensors,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

ADAPTER = "adapter_config.json"


@component("model")
class Run(Component):
    """Goes on from the weights and the tokenizer in a run's ``model/`` folder."""

    path: str  # the run's folder, or its model folder
    dtype: Literal["fp32", "bf16"] = "fp32"

    def rules(self, stage: Any) -> Iterable[Problem]:
        """The run must have finished."""
        if not any((self._folder / name).is_file() for name in ("config.json", ADAPTER)):
            yield Problem(
                code="missing_file",
                path="path",
                message=f"there is no model in {self.path!r}",
                suggestion="Write the folder of a finished run, the one that has model/ in it.",
            )

    def build(self, seed: int) -> PreTrainedModel:
        """The run's model on the CPU, with its adapter if it has one; `seed` plays no part.

        Raises:
            RecipeError: the folder holds no model.
        """
        folder = self._folder
        if not (folder / ADAPTER).is_file():
            return read_model(Files(str(folder)), dtype=self.dtype, attention="sdpa")
        from peft import PeftModel

        require_safetensors(folder)
        named = json.loads((folder / ADAPTER).read_text(encoding="utf-8"))[
            "base_model_name_or_path"
        ]
        whole = read_model(locate(named), dtype=self.dtype, attention="sdpa")
        adapted: Any = PeftModel.from_pretrained(whole, str(folder), is_trainable=True)
        result: PreTrainedModel = adapted
        return result

    def tokenizer(self) -> PreTrainedTokenizerFast:
        """The run's tokenizer."""
        return read_tokenizer(Files(str(self._folder)))

    def parameter_groups(self, model: PreTrainedModel) -> list[dict[str, Any]]:
        """The trainable parameters, in one group."""
        return [{"params": [p for p in model.parameters() if p.requires_grad], "label": "policy"}]

    @property
    def _folder(self) -> Path:
        folder = Path(self.path).expanduser()
        return folder / "model" if (folder / "model").is_dir() else folder
