"""Thoughts of what was collected, told apart from calls by their tokens."""

from __future__ import annotations

import numpy as np

from agentrecipes.components import build
from agentrecipes.records import Source, Stop, Task, Trajectory, Turn
from agentrecipes.rollout.chat import Chat
from agentrecipes.training.rows import trajectory_rows
from agentrecipes.training.weighing import segmented

CHAT = Chat.take_apart(build("model", {"name": "tiny", "text": "code"}).tokenizer())


def turn(text: str) -> Turn:
    ids = (*CHAT.encode(text), CHAT.eos)
    return Turn(
        prompt=(2, 300),
        action=ids,
        logp_rollout=(-1.0,) * len(ids),
        observation=(),
        prompt_sources=(Source.PROMPT,) * 2,
        observation_sources=(),
        action_text=text,
        observation_text="",
        calls=(),
        valid=True,
        reward=0.0,
        policy_version=0,
        engine_seconds=0.0,
        tool_seconds=0.0,
    )


def segments(text: str) -> list[int]:
    one = Trajectory(Task("t", "train", "?"), "g", 0, (turn(text),), Stop.ANSWERED, None, 0)
    [row] = segmented(trajectory_rows([one]), [one], CHAT)
    assert len(row.segment) == len(row)
    return np.asarray(row.segment).tolist()


def test_a_thought_ends_with_its_tag_and_the_prompt_is_in_neither():
    # <think> need </think> | [ author ( ) ] and the end of the message, after two prompt tokens.
    assert segments("<think> need </think>[author()]") == [0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 2]


def test_without_a_thought_all_is_the_rest():
    assert segments("[author()]") == [0, 0, 2, 2, 2, 2, 2, 2]
