"""Counter-based randomness: a draw is a function of what it is for; there is no state to save."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

Key = Sequence[int | str]


def derive(*key: int | str) -> int:
    """A seed in [0, 2^63) for (recipe seed, stage, iteration, purpose, …), the same everywhere."""
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in key)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def uniforms(key: Key, count: int) -> np.ndarray:
    """`count` float64 numbers in [0, 1); number t is token t's and does not depend on `count`."""
    return numbers(derive(*key), count)


def numbers(seed: int, count: int) -> np.ndarray:
    """The `uniforms` of a key whose derived seed is `seed`: for a sampler in another process."""
    return np.random.Generator(np.random.Philox(seed)).random(count)
