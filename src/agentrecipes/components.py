"""Parts: frozen records whose fields are what YAML can say and whose methods are the behaviour.

The name in the YAML is the name of the file: ``rewards/exact_match.py`` holds ``exact_match``. A
part from outside comes through the entry-point group ``agentrecipes.<kind>``, or from a folder that
the user names with ``--parts``.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidatorFunctionWrapHandler,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError, core_schema

from agentrecipes.errors import AgentRecipesError, Problem

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler

FOLDER = {
    "algorithm": "algorithms",
    "curriculum": "curricula",
    "dataset": "datasets",
    "demonstrations": "demonstrations",
    "engine": "engines",
    "environment": "environments",
    "judge": "judges",
    "model": "models",
    "protocol": "protocols",
    "replay": "replay",
    "retriever": "retrievers",
    "reward": "rewards",
    "sampling": "sampling",
    "tool": "tools",
}

_found: dict[tuple[str, str], type[Component]] = {}
_added: list[Path] = []


class PluginFailed(AgentRecipesError, ImportError):
    """A part from outside this package could not be imported; the message says which and why."""

    exit_code = 2


class Fields(BaseModel):
    """A frozen record that refuses keys it does not know, and suggests the one that was meant."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        arbitrary_types_allowed=True,
        populate_by_name=True,
        allow_inf_nan=False,
    )

    @model_validator(mode="wrap")
    @classmethod
    def _explain(cls, data: Any, handler: ValidatorFunctionWrapHandler) -> Self:
        """Say "no field is called x. Did you mean y?", here where the fields are known."""
        try:
            record: Self = handler(data)
            return record
        except ValidationError as error:
            details = [_detail(cls, line) for line in error.errors(include_url=False)]
            raise ValidationError.from_exception_data(cls.__name__, details) from None

    def dump(self) -> dict[str, Any]:
        """The record as YAML would write it, every field spelled out."""
        return {(f.alias or k): plain(getattr(self, k)) for k, f in type(self).model_fields.items()}


def _detail(cls: type[Fields], line: Mapping[str, Any]) -> InitErrorDetails:
    kind, loc = line["type"], line["loc"]
    context = dict(line.get("ctx", {}))
    if kind == "extra_forbidden" and len(loc) == 1:
        hint = suggest(str(loc[0]), (field.alias or key for key, field in cls.model_fields.items()))
        custom = PydanticCustomError(
            "unknown_key", "no field is called {key}", {"key": repr(loc[0]), "hint": hint}
        )
        return InitErrorDetails(type=custom, loc=loc, input=line["input"])
    if kind == "value_error":
        context = {"error": str(context.get("error", line["msg"]))}
        custom = PydanticCustomError("value_error", "{error}", context)
        return InitErrorDetails(type=custom, loc=loc, input=line["input"])
    custom = PydanticCustomError(
        kind, line["msg"].replace("{", "{{").replace("}", "}}"), context or None
    )
    return InitErrorDetails(type=custom, loc=loc, input=line["input"])


class Component(Fields):
    """A part of a recipe: subclass once and decorate with ``@component(kind)``."""

    kind: ClassVar[str]
    part_name: ClassVar[str]
    # What the part brings for other fields of its stage.
    stage_defaults: ClassVar[Mapping[str, Any]] = {}

    def rules(self, stage: Any) -> Iterable[Problem]:
        """What is wrong with the stage this part stands in; paths are relative to the part."""
        return ()

    def dump(self) -> dict[str, Any]:
        """The part as YAML would write it, every field spelled out."""
        return {"name": self.part_name, **super().dump()}


C = TypeVar("C", bound=Component)


def plain(value: Any) -> Any:
    """Parts and records inside a value as plain mappings and lists."""
    if isinstance(value, Fields):
        return value.dump()
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, frozenset | set):
        return sorted(plain(item) for item in value)
    return str(value) if isinstance(value, Path) else value


def component(kind: str, *, name: str | None = None) -> Callable[[type[C]], type[C]]:
    """Register a part of `kind` under the name of the file that defines it, or under `name`.

    Raises:
        ValueError: there is no such kind, or a part of this package has the name.
    """
    if kind not in FOLDER:
        raise ValueError(f"no kind of part is called {kind!r}. Known: {', '.join(FOLDER)}.")

    def register(cls: type[C]) -> type[C]:
        cls.kind = kind
        cls.part_name = name or cls.__module__.rpartition(".")[2]
        module = f"agentrecipes.{FOLDER[kind]}.{cls.part_name}"
        if cls.__module__ != module and _own(kind, cls.part_name):
            raise ValueError(f"the {kind} {cls.part_name!r} comes with agentrecipes; rename yours")
        _found[kind, cls.part_name] = cls
        return cls

    return register


def suggest(name: str, known: Iterable[str]) -> str:
    """ "Did you mean 'x'?" for a close name, else the list of what is known."""
    names = sorted(known)
    guess = get_close_matches(name, names, n=1)
    return f"Did you mean {guess[0]!r}?" if guess else f"Known: {', '.join(names) or 'none'}."


def names(kind: str) -> list[str]:
    """Names of all parts of `kind`: this package's, plug-ins', those of ``--parts`` folders."""
    files = (Path(__file__).parent / FOLDER[kind]).glob("[a-z]*.py")
    own = {path.stem for path in files if _own(kind, path.stem)}
    return sorted(own | set(_plugins(kind)) | {n for k, n in _found if k == kind})


@lru_cache
def _own(kind: str, name: str) -> bool:
    """Whether a file of this package defines the part."""
    path = Path(__file__).parent / FOLDER[kind] / f"{name}.py"
    there = name.isidentifier() and path.is_file()
    return there and "\n@component(" in path.read_text(encoding="utf-8")


@lru_cache
def _plugins(kind: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=f"agentrecipes.{kind}")}


def find(kind: str, name: str) -> type[Component]:
    """Import the one file that defines `name`; nothing else in its folder is imported.

    Raises:
        KeyError: no part of that kind has the name.
        PluginFailed: a plug-in of that name cannot be imported.
    """
    if (kind, name) in _found:
        return _found[kind, name]
    if _own(kind, name):
        import_module(f"agentrecipes.{FOLDER[kind]}.{name}")
    elif point := _plugins(kind).get(name):
        try:
            _found[kind, name] = point.load()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise PluginFailed(
                f"the {kind} {name!r} of {point.value!r} cannot be imported: {reason}"
            ) from error
    if (kind, name) not in _found:
        raise KeyError(name)
    return _found[kind, name]


def add_folder(folder: Path) -> list[Path]:
    """Import every ``*.py`` in a folder that the user named; return the files."""
    files = sorted(folder.glob("[a-z]*.py"))
    for path in files:
        name = f"agentrecipes_parts.{path.stem}"
        _added.append(path)
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise PluginFailed(f"{path} is not a Python file that can be imported")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise PluginFailed(
                f"{path} cannot be imported: {type(error).__name__}: {error}"
            ) from error
    return files


def added_files() -> list[Path]:
    """The files that `add_folder` imported: inputs of a run that no recipe names."""
    return list(_added)


def build(kind: str, value: Any) -> Any:
    """A part from its YAML form: ``{name: x, field: …}`` or just ``x``; a part stays as it is.

    Raises:
        PydanticCustomError: the name is missing or unknown.
        ValidationError: a field is wrong.
    """
    if isinstance(value, Component):
        return value
    data = {"name": value} if isinstance(value, str) else value
    if not isinstance(data, Mapping) or not isinstance(data.get("name"), str):
        context = {
            "kind": kind,
            "hint": f"Write a name, or {{name: …}}; known: {', '.join(names(kind))}.",
        }
        raise PydanticCustomError(
            "wrong_type", "expected a {kind}, but got " + _shown(value), context
        )
    try:
        cls = find(kind, data["name"])
    except KeyError:
        context = {
            "kind": kind,
            "name": repr(data["name"]),
            "hint": suggest(data["name"], names(kind)),
            "key": "name",
        }
        raise PydanticCustomError("unknown_part", "no {kind} is called {name}", context) from None
    return cls.model_validate({key: item for key, item in data.items() if key != "name"})


def _shown(value: Any) -> str:
    text = repr(value)
    return (text if len(text) <= 60 else text[:57] + "...").replace("{", "{{").replace("}", "}}")


class PartOf:
    """Marks a field that holds a part: ``retriever: Annotated[Retriever, PartOf("retriever")]``."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(lambda value: build(self.kind, value))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"$ref": f"#/$defs/{self.kind}"}


class FileName:
    """Marks a text field that names a file: ``path: Annotated[str, FileName("data")]``.

    The recipe keeps what was written. The part that is built gets an absolute path: a relative
    one starts at the folder of the recipe file, or where the user stands if it was typed. ``data``
    must exist, in the recipe's folder unless the user typed it. ``hub`` is a name on a hub, unless
    a folder of that name lies in the recipe's folder. ``text`` is a text, or the name of a
    ``.txt``, ``.md`` or ``.jinja`` file, and the part gets its text. ``made`` is written by the
    run itself: it need not be there yet, and is no input of the run.
    """

    def __init__(self, what: Literal["data", "hub", "text", "made"] = "data") -> None:
        self.what = what
