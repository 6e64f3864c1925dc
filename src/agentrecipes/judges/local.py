"""A causal language model on this machine, asked greedily."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from agentrecipes.components import Component, FileName, component
from agentrecipes.judges.batches import Batches


@component("judge")
class Local(Component):
    """Loads a Hugging Face model once and answers in batches, most likely token by token.

    Prompts that wait at the same time share a batch, and a row's rounding depends on its batch:
    with `batch_size` 1 a reply depends on its prompt alone. What is in the cache stays as it is.
    """

    path: Annotated[str, FileName("hub")]  # folder or hub name of a chat model
    tokens: Annotated[int, Field(ge=1)] = 64  # most tokens of a reply
    batch_size: Annotated[int, Field(ge=1)] = 8
    device: str = "cpu"
    dtype: Literal["float32", "bfloat16"] = "float32"
    timeout_seconds: Annotated[float, Field(gt=0.0)] = 600.0  # for one prompt, its turn included
    cache: Annotated[str, FileName("made")] | None = (
        None  # folder in which replies are kept; null: the reward's own `cache`
    )

    @property
    def asks_at_once(self) -> int:
        """Two batches: one at work, one waiting."""
        return 2 * self.batch_size

    def identity(self) -> Mapping[str, Any]:
        """Model and parameters; not the device, and not the batch."""
        own = ("tokens", "dtype")
        return {"judge": "local", "model": self.path, **{k: getattr(self, k) for k in own}}

    async def answer(self, prompts: Sequence[str]) -> list[str]:
        """One reply per prompt, in their order."""
        batches = _batches(self, id(asyncio.get_running_loop()))
        return list(await asyncio.gather(*(batches.reply(prompt) for prompt in prompts)))


@lru_cache
def _batches(judge: Local, loop: int) -> Batches:
    return Batches(lambda prompts: _model(judge).replies(prompts), judge.batch_size)


@lru_cache
def _model(judge: Local) -> _Model:
    return _Model(judge)


class _Model:
    """The loaded model and its tokenizer."""

    def __init__(self, judge: Local) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self._judge = judge
        models = os.environ.get("AGENTRECIPES_MODELS")  # a folder there comes before a hub
        near = Path(models) / judge.path if models else Path(judge.path)
        path = str(near) if near.is_dir() else judge.path
        self._tokenizer: Any = AutoTokenizer.from_pretrained(path, padding_side="left")
        if self._tokenizer.pad_token_id is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        model: Any = AutoModelForCausalLM.from_pretrained(path, dtype=getattr(torch, judge.dtype))
        self._model = model.to(judge.device).eval()

    def replies(self, prompts: Sequence[str]) -> list[str]:
        """One reply per prompt."""
        import torch

        chats = self._tokenizer.chat_template is not None  # its text has its own beginning
        texts = [self._chat(prompt) for prompt in prompts]
        rows = self._tokenizer(texts, padding=True, add_special_tokens=not chats)
        ids, mask = (
            torch.tensor(rows[key], device=self._judge.device)
            for key in ("input_ids", "attention_mask")
        )
        with torch.no_grad():
            out = self._model.generate(
                input_ids=ids,
                attention_mask=mask,
                max_new_tokens=self._judge.tokens,
                do_sample=False,
                temperature=None,
                top_p=None,
                top_k=None,
                pad_token_id=self._tokenizer.pad_token_id,
            )
        said: list[str] = self._tokenizer.batch_decode(
            out[:, ids.shape[1] :], skip_special_tokens=True
        )
        return [each.strip() for each in said]

    def _chat(self, prompt: str) -> str:
        if self._tokenizer.chat_template is None:
            return f"{prompt}\n"
        messages = [{"role": "user", "content": prompt}]
        text: str = self._tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        return text
