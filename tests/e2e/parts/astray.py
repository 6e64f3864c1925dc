"""The native engine, whose log-probabilities are off, or which fails after some updates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from agentrecipes.components import Component, component
from agentrecipes.engines.native import Native
from agentrecipes.errors import EngineError


@component("engine")
class Astray(Component):
    """Says `nats` too much of every token; samples no policy of version `fails_at` or later."""

    order: ClassVar[Literal["fixed", "ready"]] = "fixed"
    nats: float = 0.0
    most: float | None = None
    fails_at: int | None = None

    def bound(self, *, fp32: bool) -> float | None:
        return self.most

    def require(self) -> None: ...

    def start(self, model: Any, tokenizer: Any) -> AstrayEngine:
        return AstrayEngine(Native().start(model, tokenizer), self)


@dataclass
class AstrayEngine:
    inner: Any
    part: Astray
    version: int = 0
    rests: int = 0

    async def generate(self, requests):
        if self.part.fails_at is not None and self.version >= self.part.fails_at:
            raise EngineError("astray engine: it went away.")
        samples = await self.inner.generate(requests)
        return [replace(s, logp=tuple(x - self.part.nats for x in s.logp)) for s in samples]

    def load(self, weights, version) -> None:
        self.version = version
        self.inner.load(weights, version)

    def rest(self) -> None:
        self.rests += 1

    def close(self) -> None:
        self.inner.close()
