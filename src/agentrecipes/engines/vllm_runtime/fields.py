"""What both vLLM engines take, and what holds for both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from agentrecipes.components import Component
from agentrecipes.engines.vllm_runtime import setup
from agentrecipes.errors import Problem


class VllmFields(Component):
    """The engine proper; where it runs is the parts' own."""

    order: ClassVar[Literal["fixed", "ready"]] = "ready"

    dtype: Literal["fp32", "bf16"] | None = None  # of the engine's weights; null: the model's
    context: Annotated[int, Field(ge=2)] | None = (
        None  # most tokens of a prompt and its answer; null: the model's positions
    )
    sequences: Annotated[int, Field(ge=1)] = 256  # most turns that an engine samples at once
    cache_gib: Annotated[float, Field(gt=0.0)] | None = (
        None  # memory for keys and values; null: a quarter GiB on a CPU, `memory` on a GPU
    )
    eager: bool | None = None  # no compiled graphs; null: on a CPU
    max_gap: Annotated[float, Field(gt=0.0)] | None = (
        None  # nats that a token's log-probability may differ from the trainer's before the run
        # stops; null: 0.01 in fp32, 2 in bf16
    )

    def rules(self, stage: Any) -> Iterable[Problem]:
        """A context that holds a trajectory."""
        tokens = stage.rollout.tokens
        if self.context is not None and self.context < tokens:
            found = f"a trajectory may have {tokens} tokens, and the engine's context is shorter"
            yield Problem("contradiction", "context", found, f"Write at least {tokens}.")

    def bound(self, *, fp32: bool) -> float | None:
        """Most nats between a token's log-probability here and in the trainer."""
        exact = fp32 and self.dtype != "bf16"
        return self.max_gap or (setup.EXACT_NATS if exact else setup.ROUNDED_NATS)
