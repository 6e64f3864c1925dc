"""What the comparisons with TRL share: an environment, models, recorded attempts."""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".bench" / "trl"
TRL = "1.16.0"


def inside(script: str) -> None:
    """Go on in an environment that has TRL as well; made on the first call, which takes minutes."""
    python = HOME / "bin" / "python"
    if Path(sys.prefix) == HOME:
        return
    if not (HOME / ".installed").exists():
        subprocess.run([sys.executable, "-m", "venv", HOME], check=True)
        for words in (["torch==2.13.0"], ["-e", ".", "-c", "constraints.txt", f"trl=={TRL}"]):
            subprocess.run([python, "-m", "pip", "install", "-q", *words], cwd=ROOT, check=True)
        (HOME / ".installed").touch()
    os.execv(python, [str(python), script, *sys.argv[1:]])


@dataclass(frozen=True)
class Shape:
    """`prompts` prompts of `prompt` tokens with `group` completions of at most `completion`."""

    model: str
    prompt: int
    completion: int
    group: int
    prompts: int


SMALL = (Shape("2m", 64, 64, 8, 2), Shape("2m", 256, 64, 8, 4), Shape("2m", 64, 64, 1, 8))
LARGE = (
    Shape("2m", 512, 128, 8, 4),
    Shape("15m", 64, 64, 8, 2),
    Shape("15m", 256, 64, 8, 4),
    Shape("15m", 512, 128, 8, 4),
    Shape("135m", 256, 64, 4, 2),
)
SIZES: dict[str, dict[str, Any]] = {
    "2m": {"hidden_size": 192, "num_hidden_layers": 4, "num_attention_heads": 6, "vocab_size": 512},
    "15m": {
        "hidden_size": 384,
        "num_hidden_layers": 6,
        "num_attention_heads": 6,
        "vocab_size": 4096,
    },
    "135m": {  # SmolLM2's shape
        "hidden_size": 576,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "intermediate_size": 1536,
        "vocab_size": 49152,
        "tie_word_embeddings": True,
    },
}


def network(size: str) -> Any:
    """A randomly initialised Llama in float32, the same for the same size."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    fields = dict(SIZES[size])
    fields.setdefault("intermediate_size", 8 * fields["hidden_size"] // 3)
    torch.manual_seed(0)
    ends = {"bos_token_id": None, "eos_token_id": 1, "pad_token_id": 0}
    return LlamaForCausalLM(LlamaConfig(max_position_embeddings=4096, **fields, **ends))


def tokenizer(size: str, *, ends: bool = True) -> Any:
    """A word for each token of a size's vocabulary; `ends`: one of them is said to end a text."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = ["<pad>", "<end>", *(f"w{n}" for n in range(2, SIZES[size]["vocab_size"]))]
    numbers = {word: number for number, word in enumerate(words)}
    made = Tokenizer(models.WordLevel(numbers, unk_token="<pad>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    end = {"eos_token": "<end>"} if ends else {}
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", padding_side="left", **end
    )


@dataclass(frozen=True)
class Attempts:
    """Recorded completions: lengths are lognormal, half of the most in the median."""

    prompts: list[list[int]]  # by attempt
    completions: list[list[int]]
    advantages: list[float]


def prompts(shape: Shape) -> list[list[int]]:
    """By attempt: each prompt as often as its group has attempts."""
    draw = random.Random(f"{shape.prompt}-{shape.group}-{shape.prompts}")
    words = SIZES[shape.model]["vocab_size"]
    drawn = [[draw.randrange(2, words) for _ in range(shape.prompt)] for _ in range(shape.prompts)]
    return [prompt for prompt in drawn for _ in range(shape.group)]


def attempts(shape: Shape) -> Attempts:
    """Those of a shape; the first of each group has the full length."""
    draw = random.Random(f"{shape.prompt}-{shape.completion}-{shape.group}-{shape.prompts}")
    words = SIZES[shape.model]["vocab_size"]

    def some(count: int) -> list[int]:
        return [draw.randrange(2, words) for _ in range(count)]

    prompts, completions, advantages = [], [], []
    for _ in range(shape.prompts):
        prompt = some(shape.prompt)
        rewards = [float(n % 2) for n in range(shape.group)]
        mean = sum(rewards) / shape.group
        spread = statistics.stdev(rewards) if shape.group > 1 else 1.0
        for place, reward in enumerate(rewards):
            drawn = round(draw.lognormvariate(0.0, 0.5) * shape.completion / 2)
            length = shape.completion if place == 0 else max(4, min(drawn, shape.completion))
            prompts.append(prompt)
            completions.append(some(length))
            advantages.append((reward - mean) / spread if shape.group > 1 else 1.0)
    return Attempts(prompts, completions, advantages)


def grpo_trainer(model: Any, shape: Shape, folder: str, **more: Any) -> Any:
    """TRL's GRPOTrainer of a shape, on a CPU in float32, `more` being further GRPOConfig fields.

    No token ends a completion, so that it costs nothing to forbid one: all have the full length.
    Its reward is `mean_word`.
    """
    from trl import GRPOConfig, GRPOTrainer

    from datasets import Dataset

    rows = shape.prompts * shape.group
    fields: dict[str, Any] = {
        "use_cpu": True,
        "bf16": False,
        "beta": 0.0,
        "num_iterations": 1,
        "temperature": 1.0,
        "num_generations": max(shape.group, 2),
        "per_device_train_batch_size": max(rows, 2),
        "gradient_accumulation_steps": 1,
        "gradient_checkpointing": False,
        "max_completion_length": shape.completion,
        "report_to": [],
    }
    own = GRPOTrainer(
        model=model,
        reward_funcs=lambda completions, **_: [mean_word(text) for text in completions],
        args=GRPOConfig(output_dir=folder, **fields, **more),
        train_dataset=Dataset.from_list([{"prompt": "w2"}] * rows),
        processing_class=tokenizer(shape.model),
    )
    own.current_gradient_accumulation_steps = 1
    own.eos_token_ids = [-1]
    own.generation_kwargs["eos_token_id"] = None
    for settings in (own.generation_config, model.generation_config, model.config):
        settings.eos_token_id = None
    return own


def mean_word(text: str) -> float:
    """A reward that hardly any two texts share: the mean of their words' numbers."""
    numbers = [int(word[1:]) for word in text.split() if word.startswith("w")]
    return sum(numbers) / max(len(numbers), 1)


def gradient_gap(first: Any, other: Any) -> float:
    """Largest difference between two models' gradients."""
    pairs = zip(first.parameters(), other.parameters(), strict=True)
    return max(float((a.grad - b.grad).abs().max()) for a, b in pairs)
