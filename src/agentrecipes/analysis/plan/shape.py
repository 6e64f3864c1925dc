"""The size of a model from its ``config.json`` or a recipe's fields; no weights are read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentrecipes.errors import RecipeError

SPECIALS_AND_BYTES = 6 + 256  # of the tiny model's tokenizer, before its words of several bytes
BYTES = {"fp32": 4, "bf16": 2}
LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True, slots=True)
class Shape:
    """A decoder of L layers: ``Shape("…", vocabulary=49152, width=576, layers=30, …)``."""

    source: str  # what says so
    vocabulary: int
    width: int
    layers: int
    mlp: int
    heads: int
    kv_heads: int
    head: int  # width of a head
    tied: bool  # the output head is the embeddings
    family: str = ""  # of its config.json: llama, qwen2, ...
    stored: int | None = None  # parameters in the headers of its files, where these are at hand

    @property
    def queries(self) -> int:
        return self.heads * self.head

    @property
    def keys(self) -> int:
        return self.kv_heads * self.head

    @property
    def linear(self) -> dict[str, tuple[int, int]]:
        """A layer's matrices: name → (inputs, outputs)."""
        attention = (self.width, self.queries), (self.width, self.keys), (self.width, self.keys)
        outward = (self.queries, self.width)
        mlp = (self.width, self.mlp), (self.width, self.mlp), (self.mlp, self.width)
        return dict(zip(LINEAR, (*attention, outward, *mlp), strict=True))

    @property
    def computing(self) -> int:
        """Parameters that take part in a token's matrix products, the output head included."""
        layer = sum(inputs * outputs for inputs, outputs in self.linear.values())
        return self.layers * layer + self.vocabulary * self.width

    @property
    def parameters(self) -> int:
        """All parameters; those of biases are told only by the files themselves."""
        if self.stored is not None:
            return self.stored
        norms = (2 * self.layers + 1) * self.width
        return self.computing + norms + (0 if self.tied else self.vocabulary * self.width)

    def adapter(self, rank: int, targets: str | tuple[str, ...]) -> int:
        """Parameters of low-rank adapters on `targets`, "all-linear" or names of matrices."""
        named = LINEAR if isinstance(targets, str) else targets
        sizes = [sum(ends) for name, ends in self.linear.items() if name in named]
        return self.layers * rank * sum(sizes)


def shape_of(model: Any) -> Shape:
    """The shape of a recipe's model part.

    Raises:
        RecipeError: its ``config.json`` is not at hand, or is of a kind that is not known here.
    """
    if model.part_name == "tiny":
        return _tiny(model)
    path = getattr(model, "path", None)
    if path is None:
        raise _unknown(f"no plan for a model of kind {model.part_name!r}", "Use tiny, hf or run.")
    folder = _folder(str(path), getattr(model, "revision", None))
    if folder is None:
        raise _unknown(
            f"config.json of {path!r} is not at hand",
            f"Put it into a folder {path} under AGENTRECIPES_MODELS, or download the model first.",
        )
    return _from_config(folder)


def _tiny(model: Any) -> Shape:
    return Shape(
        source="the recipe's fields",
        vocabulary=SPECIALS_AND_BYTES + sum(len(word.encode()) > 1 for word in model.vocabulary),
        width=model.width,
        layers=model.layers,
        mlp=model.mlp,
        heads=model.heads,
        kv_heads=model.heads,
        head=32,
        tied=False,
        family="llama",
    )


def _folder(path: str, revision: str | None) -> Path | None:
    """Where the model's files are: a folder, one under AGENTRECIPES_MODELS, or the hub's cache."""
    models = os.environ.get("AGENTRECIPES_MODELS")
    places = [Path(models) / path] if models else []
    places += [Path(path).expanduser(), Path(path).expanduser() / "model"]
    home = Path(os.environ.get("HF_HOME") or "~/.cache/huggingface").expanduser()
    cache = home / "hub" / f"models--{path.replace('/', '--')}"
    named = cache / "refs" / (revision or "main")
    if named.is_file():
        places.append(cache / "snapshots" / named.read_text(encoding="utf-8").strip())
    names = ("config.json", "adapter_config.json")
    return next((p for p in places if any((p / name).is_file() for name in names)), None)


def _from_config(folder: Path) -> Shape:
    adapter = folder / "adapter_config.json"
    if not (folder / "config.json").is_file():
        named = json.loads(adapter.read_text(encoding="utf-8"))["base_model_name_or_path"]
        whole = _folder(named, None)
        if whole is None:
            raise _unknown(f"config.json of {named!r} is not at hand", "Download that model first.")
        folder = whole
    data: Mapping[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    data = data.get("text_config") or data
    try:
        heads, width = int(data["num_attention_heads"]), int(data["hidden_size"])
        return Shape(
            source=str(folder / "config.json"),
            vocabulary=int(data["vocab_size"]),
            width=width,
            layers=int(data["num_hidden_layers"]),
            mlp=int(data["intermediate_size"]),
            heads=heads,
            kv_heads=int(data.get("num_key_value_heads") or heads),
            head=int(data.get("head_dim") or width // heads),
            tied=bool(data.get("tie_word_embeddings", False)),
            family=str(data.get("model_type", "")),
            stored=_stored(folder),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _unknown(
            f"{folder / 'config.json'} says no {error.args[0]}", "Only dense decoders are planned."
        ) from None


def _stored(folder: Path) -> int | None:
    """The number of parameters in the headers of the weights' files; None where there are none."""
    files = sorted(folder.glob("*.safetensors"))
    total = 0
    for path in files:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(size)) if size < 10**8 else {}
        for name, tensor in header.items():
            if name != "__metadata__":
                count = 1
                for extent in tensor["shape"]:
                    count *= int(extent)
                total += count
    return total if files else None


def _unknown(message: str, suggestion: str) -> RecipeError:
    return RecipeError.about("no_plan", message, suggestion, path="model")
