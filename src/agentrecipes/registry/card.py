"""What a registry says of one version of a recipe: figures, how they came about, every file's hash.

A card is written once and never changed. It is untrusted when it is read: every field is checked,
and a path in it can only lead to a file below the folder that is being filled.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError

from agentrecipes.components import Fields
from agentrecipes.errors import CheckFailed, RecipeError
from agentrecipes.recipe.source import dump, parse

MOST_FILES = 200  # in one bundle
MOST_BYTES = 64 << 20  # of all files of a bundle together
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_\-]{0,99}$")]
Version = Annotated[str, Field(pattern=r"^[0-9][0-9A-Za-z.\-+]{0,49}$")]
_PLAIN = re.compile(r"[^\x00-\x1f\x7f\\:*?\"<>|]+")


def plain_path(path: str) -> str:
    """A relative path of plain names, with slashes.

    Raises:
        ValueError: it could lead elsewhere, or cannot be written on every system.
    """
    parts = PurePosixPath(path).parts
    plain = all(_PLAIN.fullmatch(part) and part not in (".", "..") for part in parts)
    if not parts or not plain or path != "/".join(parts):
        raise ValueError(f"{path!r} is not a plain path below the folder")
    if len(path) > 200 or any(part != part.strip(" ") or part.endswith(".") for part in parts):
        raise ValueError(f"{path!r} cannot be written everywhere")
    return path


class File(Fields):
    """One file of a bundle."""

    sha256: Sha256
    bytes: Annotated[int, Field(ge=0, le=MOST_BYTES)]


class Result(Fields):
    """One figure, over the seeds that were run."""

    stage: str
    split: str
    mode: str
    metric: str
    tasks: int
    seeds: tuple[int, ...]
    values: tuple[float, ...]  # one a seed
    mean: float


class Card(Fields):
    """One version of a recipe, as a registry keeps it."""

    name: Name
    version: Version
    title: str = ""  # the recipe's own first comment
    paper: str | None = None
    recipe_hash: Sha256
    package: str  # the version of agentrecipes that it was pushed with
    requires: tuple[str, ...] = ()
    parts: Mapping[str, Sha256] = {}  # files of --parts, which a registry does not carry
    command: str
    wall_seconds: tuple[float, ...] = ()  # one a seed
    results: tuple[Result, ...] = ()  # empty: nothing was measured
    files: Annotated[
        Mapping[Annotated[str, AfterValidator(plain_path)], File],
        Field(min_length=1, max_length=MOST_FILES),
    ]

    @property
    def bytes(self) -> int:
        """Of all its files."""
        return sum(file.bytes for file in self.files.values())


def card_text(card: Card) -> str:
    """The card as it is stored."""
    return dump(json.loads(card.model_dump_json(exclude_defaults=True)))


def read_card(data: bytes, sha256: str, *, shown: str) -> Card:
    """The card in `data`, which must have that hash.

    Raises:
        CheckFailed: it was changed, or says what no card may say.
    """
    require_hash(data, sha256, shown=shown)
    try:
        found: dict[str, Any] = parse(data.decode(), shown)
        card = Card.model_validate(found)
    except (RecipeError, ValidationError, UnicodeDecodeError) as error:
        reason = "; ".join(str(error).splitlines())
        raise CheckFailed(f"{shown}: this is no card: {reason}") from None
    folded = [path.casefold() for path in card.files]
    if len(set(folded)) != len(folded):
        raise CheckFailed(f"{shown}: two files differ by capital letters only")
    if card.bytes > MOST_BYTES:
        raise CheckFailed(f"{shown}: its files have {card.bytes} bytes, over {MOST_BYTES}")
    return card


def require_hash(data: bytes, sha256: str, *, shown: str) -> None:
    """Hold bytes to a hash.

    Raises:
        CheckFailed: they have another one.
    """
    found = sha256_of(data)
    if found != sha256:
        raise CheckFailed(f"{shown} was changed: its SHA-256 is {found}, not {sha256}")


def sha256_of(data: bytes) -> str:
    """SHA-256 (hex)."""
    return hashlib.sha256(data).hexdigest()
