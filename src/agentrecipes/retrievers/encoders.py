"""Models that turn text into vectors: one that travels in a package, and sentence-transformers'."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentrecipes.errors import MissingExtra, RecipeError

if TYPE_CHECKING:
    import numpy as np

PACKAGED = "wordllama"  # static embeddings of 256 numbers, MIT, in the package of that name
COMMAND = "Install it: pip install 'agentrecipes[dense]'"
BATCH = 64  # texts at once

Encoder = Callable[[Sequence[str]], "np.ndarray"]


def missing(model: str) -> str | None:
    """The library that `model` needs and that is not installed."""
    needed = PACKAGED if model == PACKAGED else "sentence_transformers"
    return None if find_spec(needed) else needed.replace("_", "-")


@lru_cache(maxsize=4)
def encoder(model: str) -> Encoder:
    """Makes unit vectors, (N, D) float32, of texts.

    Raises:
        MissingExtra: its library is not installed.
        RecipeError: there is no such model.
    """
    if (library := missing(model)) is not None:
        raise MissingExtra(f"the dense retriever needs {library}. {COMMAND}")
    raw = _packaged() if model == PACKAGED else _transformer(model)

    def encode(texts: Sequence[str]) -> np.ndarray:
        import numpy as np

        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        found = np.asarray(raw(clean), dtype=np.float32)
        length = np.linalg.norm(found, axis=1, keepdims=True)
        unit: np.ndarray = found / np.maximum(length, np.float32(1e-9))
        return unit

    return encode


def _packaged() -> Encoder:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    import wordllama

    root.handlers[:] = handlers  # importing it makes every library's log appear
    root.setLevel(level)
    # Told where its files are, it looks for nothing on a hub.
    folder = Path(wordllama.__file__).parent
    model: Any = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    return lambda texts: model.embed(list(texts), norm=False, batch_size=BATCH)


def _transformer(name: str) -> Encoder:
    from sentence_transformers import SentenceTransformer

    try:
        model: Any = SentenceTransformer(name)
    except (OSError, ValueError) as error:
        first = str(error).splitlines()[0][:200]
        raise RecipeError(
            f"retriever.model: {name!r} cannot be loaded ({first}). Give a folder with a "
            f"sentence-transformers model, a name on a hub that can be reached, or {PACKAGED!r}"
        ) from error
    return lambda texts: model.encode(list(texts), batch_size=BATCH, show_progress_bar=False)


@lru_cache(maxsize=16)
def identity(model: str) -> str:
    """What the vectors depend on: a package's version, a folder's contents, or a hub name."""
    if model == PACKAGED:
        return f"{PACKAGED} {version(PACKAGED)}"
    folder = Path(model)
    if not folder.is_dir():
        return model
    found = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            found.update(file.relative_to(folder).as_posix().encode())
            with file.open("rb") as opened:
                found.update(hashlib.file_digest(opened, "sha256").digest())
    return found.hexdigest()
