"""The scorer that a generator of Reasoning Gym brings."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar

from agentrecipes.components import Component, component
from agentrecipes.errors import MissingExtra
from agentrecipes.rewards.protocol import Gives, View


@component("reward")
class ReasoningGym(Component):
    """What the generator's own scorer gives, in [0, 1]; some give a little for a good form.

    Null for a task that the dataset ``reasoning_gym`` did not make. Stojanovski et al. 2025,
    https://arxiv.org/abs/2505.24760.
    """

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset({"entry"})
    gives: ClassVar[Gives] = "trajectory"

    def require(self) -> None:
        """Import it.

        Raises:
            MissingExtra: Reasoning Gym is not installed.
        """
        _library()

    def score(self, view: View) -> float | None:
        """A trajectory that never answered scores 0.

        Raises:
            MissingExtra: Reasoning Gym is not installed.
        """
        entry = view.task.data.get("entry")
        if not isinstance(entry, Mapping):
            return None
        if view.answer is None:
            return 0.0
        score = _library().get_score_answer_fn(view.task.type)
        return min(1.0, max(0.0, float(score(view.answer, entry))))


@lru_cache(maxsize=1)
def _library() -> Any:
    try:
        import reasoning_gym
    except ImportError as error:
        raise MissingExtra(
            f"rewards: reasoning_gym needs Reasoning Gym ({error}). "
            "Install it with: pip install 'agentrecipes[envs]'."
        ) from error
    return reasoning_gym
