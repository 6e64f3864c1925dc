"""Small trajectories, rows and models for the tests of training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from agentrecipes.records import Source, Stop, Task, Trajectory, Turn
from agentrecipes.testing.packing_door import bare_turn
from agentrecipes.training.rows import Row


def turn(prompt: Sequence[int], action: Sequence[int], observation: Sequence[int] = ()) -> Turn:
    """A turn whose log-probabilities are -0.1, -0.2, ... so that each token's can be told apart."""
    made = bare_turn(prompt, action, observation)
    return replace(made, logp_rollout=tuple(-0.1 * (n + 1) for n in range(len(action))))


def trajectory(*turns: Turn, group: str = "g", attempt: int = 0) -> Trajectory:
    return Trajectory(
        task=Task("t", "train", "?"),
        group=group,
        attempt=attempt,
        turns=turns,
        stop=Stop.ANSWERED,
        answer=None,
        policy_version=0,
    )


def row(ids: Sequence[int], actions: Sequence[int], trajectory: int = 0) -> Row:
    """A row whose tokens at the places `actions` are the policy's."""
    mine = np.isin(np.arange(len(ids)), actions)
    return Row(
        ids=np.array(ids, dtype=np.int64),
        sources=np.where(mine, Source.POLICY, Source.PROMPT).astype(np.int8),
        turn_index=np.zeros(len(ids), dtype=np.int64),
        logp_rollout=np.zeros(len(ids), dtype=np.float32),
        weight=mine.astype(np.float32),
        trajectory=trajectory,
    )


def random_rows(lengths: Sequence[int], vocabulary: int, seed: int = 0) -> list[Row]:
    """Rows of random tokens, about half of them the policy's."""
    random = np.random.default_rng(seed)
    made = []
    for number, length in enumerate(lengths):
        ids = random.integers(0, vocabulary, length).tolist()
        actions = [place for place in range(1, length) if random.random() < 0.5]
        made.append(row(ids, actions, number))
    return made


def llama(layers: int = 2, heads: int = 4, key_heads: int = 2) -> LlamaForCausalLM:
    """A small random Llama with grouped key heads."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=50,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=key_heads,
        initializer_range=0.2,
        max_position_embeddings=128,
    )
    return LlamaForCausalLM(config)
