"""The database of a study: opened, and what is said when it cannot be."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import optuna
from optuna.storages import RDBStorage
from sqlalchemy import NullPool
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from agentrecipes.errors import AgentRecipesError, MissingExtra, RecipeError

HEARTBEAT_SECONDS, GRACE_SECONDS = 30, 120  # between signs of life; without one a trial is lost
PASSWORD = re.compile(r"(?<=//)[^/@\s]+(?=@)")


class StorageLost(AgentRecipesError, ConnectionError):
    """The study's storage does not answer; what was trained lies in the runs folder."""


def opened(url: str, shown: str) -> RDBStorage:
    """The database at an address; `shown` is the address in messages."""
    own: dict[str, Any] = {"connect_args": {"timeout": 30}, "pool_pre_ping": True}
    if not url.startswith("sqlite"):
        own = {"poolclass": NullPool}  # a connection ends with its question: none is left open
    try:
        return RDBStorage(
            url,
            engine_kwargs=own,
            heartbeat_interval=HEARTBEAT_SECONDS,
            grace_period=GRACE_SECONDS,
        )
    except ImportError as error:
        driver = "agentrecipes[postgres]" if "postgres" in url else getattr(error, "name", "")
        raise MissingExtra(
            f"storage {shown}: its driver is not installed. pip install '{driver}'"
        ) from None
    except (ArgumentError, NoSuchModuleError) as error:
        hint = "Write for example `storage: sqlite:///sweeps.db`."
        found = f"{shown!r} is no address of a database ({_line(error)})"
        raise RecipeError.about("bad_storage", found, hint, path="storage") from None
    except (SQLAlchemyError, optuna.exceptions.StorageInternalError, RuntimeError) as error:
        raise StorageLost(lost(shown, error)) from None


def lost(shown: str, error: BaseException) -> str:
    """What to say of a database that raised."""
    reason = _line(error.__cause__ or error)
    return f"storage {shown} does not answer: {reason}"


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())[:200]
    return PASSWORD.sub("***", text.partition(" (Background on this error")[0])


def file_of(url: str) -> Path | None:
    """SQLite's file; None for a server."""
    parts = urlsplit(url)
    path = Path(unquote(parts.path).removeprefix("/"))
    found = parts.scheme.startswith("sqlite") and path.is_file()
    return Path(os.path.abspath(path)) if found else None


@contextmanager
def quiet() -> Iterator[None]:
    """Optuna warns that parts it ships are experimental; which ones we use is our choice."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        warnings.simplefilter("ignore", UserWarning)
        yield


def without_password(url: str) -> str:
    """An address as it may be shown."""
    return PASSWORD.sub("***", url)
