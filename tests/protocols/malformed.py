"""Texts that say no action in any of the protocols whose answers are tagged or labelled."""

from __future__ import annotations

NOBODY = (
    *("", " ", "\n", "\x00", "\ufeff", "plain words", "The answer is Paris.", "é" * 999, "\u2028"),
    *("<think>", "</think>", "<think> t </think>", "<think> t", "<think>" * 500, "a\r\nb"),
    *("<answer>", "</answer>", "<answer> a", "a </answer>", "<answer> </answer>", "<ANSWER> a"),
    *("</answer> a <answer>", "<answer> a <answer> b </answer>", "< answer > a < / answer >"),
    *("<tool_call>", "</tool_call>", "<tool_call> </tool_call>", "[" * 5000, "[", "]", "[]"),
    *("```python", "```", "```python\n```", "```json\n{}\n```", "{" * 5000 + "}" * 5000),
    *("Action:", "Action: f", "Action Input: {}", "Final Answer:", "Observation: 4", "Thought: t"),
)
