"""Where bundles lie: a folder, an https server, or whatever else fsspec opens.

index.yaml                      name → version → hash of the card
cards/NAME-VERSION.yaml         what is in a bundle
files/<sha256>                  the files of all bundles, each under its own hash
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import agentrecipes
from agentrecipes.errors import AgentRecipesError, CheckFailed, RecipeError
from agentrecipes.tracking.replacing import write

SECONDS = 30.0  # that a server may be silent
PLACE = "AGENTRECIPES_REGISTRY"


class Store(Protocol):
    """What a registry needs of a place."""

    shown: str

    def read(self, path: str, most: int) -> bytes:
        """The bytes of a file.

        Raises:
            FileNotFoundError: there is none.
            CheckFailed: it has more than `most` bytes.
            AgentRecipesError: the place cannot be reached.
        """
        ...

    def write(self, path: str, data: bytes) -> None:
        """Put a file in its place, whole or not at all."""
        ...

    def names(self, folder: str) -> list[str]:
        """The files in a folder, sorted."""
        ...


def open_store(place: str | None) -> Store:
    """The store at a path or URL; without one AGENTRECIPES_REGISTRY, else the shipped registry.

    Raises:
        RecipeError: no such kind of place is known.
    """
    place = place or os.environ.get(PLACE) or str(shipped())
    scheme = urlsplit(place).scheme if "://" in place else ""
    if scheme in ("http", "https"):
        return Web(place.rstrip("/"))
    if scheme in ("", "file"):
        return Folder(Path(place.removeprefix("file://")).expanduser())
    return Objects(place)


def shipped() -> Path:
    """The registry that comes along: in the package in a wheel, beside ``src`` in a checkout."""
    package = Path(agentrecipes.__file__).parent
    packaged = package / "_registry"
    return packaged if packaged.is_dir() else package.parents[1] / "registry"


class Folder:
    """A folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.shown = str(folder)

    def read(self, path: str, most: int) -> bytes:
        target = self._folder / path
        if target.is_symlink() or not target.resolve().is_relative_to(self._folder.resolve()):
            raise CheckFailed(f"{path} is a link; a registry holds plain files")
        try:
            with target.open("rb") as file:
                return _within(file.read(most + 1), most, path)
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(path) from None
        except OSError as error:
            raise AgentRecipesError(f"{self.shown}: {path} cannot be read: {error}") from None

    def write(self, path: str, data: bytes) -> None:
        try:
            write(self._folder / path, data)
        except OSError as error:
            raise AgentRecipesError(f"{self.shown}: {path} cannot be written: {error}") from None

    def names(self, folder: str) -> list[str]:
        return sorted(file.name for file in (self._folder / folder).glob("*") if file.is_file())


class Web:
    """A server that gives files; nothing can be pushed to it."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.shown = url

    def read(self, path: str, most: int) -> bytes:
        import httpx

        url, found = f"{self._url}/{path}", b""
        try:
            with httpx.stream("GET", url, timeout=SECONDS, follow_redirects=True) as answer:
                if answer.status_code == 404:
                    raise FileNotFoundError(path)
                answer.raise_for_status()
                for piece in answer.iter_bytes():
                    found += piece
                    _within(found, most, path)
        except httpx.HTTPError as error:
            raise AgentRecipesError(f"{url}: {error or type(error).__name__}") from None
        return found

    def write(self, path: str, data: bytes) -> None:
        raise RecipeError(
            f"{self.shown} is read-only here. Push to the folder that the server gives out"
        )

    def names(self, folder: str) -> list[str]:
        raise RecipeError(f"{self.shown} cannot list its files. Use the folder behind it")


class Objects:
    """An object store that fsspec knows: ``s3://…``, ``gs://…``, ``memory://…``."""

    def __init__(self, url: str) -> None:
        import fsspec

        self.shown = url.rstrip("/")
        try:
            self._files: Any
            self._files, self._root = fsspec.core.url_to_fs(self.shown)
        except (ImportError, ValueError) as error:
            raise RecipeError(f"{url!r} cannot be opened: {error}") from None

    def read(self, path: str, most: int) -> bytes:
        try:
            with self._files.open(f"{self._root}/{path}", "rb") as file:
                return _within(file.read(most + 1), most, path)
        except FileNotFoundError:
            raise FileNotFoundError(path) from None
        except OSError as error:
            raise AgentRecipesError(f"{self.shown}: {path} cannot be read: {error}") from None

    def write(self, path: str, data: bytes) -> None:
        try:
            self._files.pipe_file(f"{self._root}/{path}", data)
        except OSError as error:
            raise AgentRecipesError(f"{self.shown}: {path} cannot be written: {error}") from None

    def names(self, folder: str) -> list[str]:
        try:
            found = self._files.ls(f"{self._root}/{folder}", detail=False)
        except FileNotFoundError:
            return []
        return sorted(str(name).rsplit("/", 1)[-1] for name in found)


def _within(data: bytes, most: int, path: str) -> bytes:
    if len(data) > most:
        raise CheckFailed(f"{path} has more than the {most} bytes that it may have")
    return data
