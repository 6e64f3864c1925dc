"""Tags in what the policy wrote, whatever the protocol makes of them."""

from __future__ import annotations

import re

from agentrecipes.rewards.protocol import View


def written(view: View) -> str:
    """All that the policy wrote, turn after turn, and nothing of the environment."""
    return "\n".join(view.actions)


def opened(text: str, tag: str) -> int:
    """How often a tag is opened."""
    return text.count(f"<{tag}>")


def closed(text: str, tag: str) -> int:
    """How often a tag is closed."""
    return text.count(f"</{tag}>")


def bodies(text: str, tag: str) -> list[str]:
    """What stands between a tag and its nearest closing, in order."""
    return re.findall(rf"<{re.escape(tag)}>(.*?)</{re.escape(tag)}>", text, re.DOTALL)


def is_paired(text: str, tag: str) -> bool:
    """Whether a tag is opened and closed in turn, at least once, and never left open."""
    found = re.findall(rf"</?{re.escape(tag)}>", text)
    wanted = [f"<{tag}>", f"</{tag}>"] * (len(found) // 2)
    return bool(found) and found == wanted
