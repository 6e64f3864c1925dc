"""Are function calls among the accepted ones? The rules of BFCL's checker for Python functions.

Patil et al. 2025, the Berkeley Function Calling Leaderboard (https://gorilla.cs.berkeley.edu). The
rules are those of ``ast_checker`` in bfcl-eval 2026.3.23, odd ones included, so that verdicts are
equal; ``rewards/bfcl_official.py`` is the door to that checker itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agentrecipes.records import Call

Document = Mapping[str, Any]  # a function as BFCL describes it
Accepted = Mapping[
    str, Sequence[Any]
]  # accepted values by argument; "" among them: may be left out

TYPES: Mapping[str, type] = {
    "string": str,
    "integer": int,
    "float": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "dict": dict,
    "any": str,
}
LISTS = ("array", "tuple")
IGNORED = re.compile(r"[ ,./\-_*^]")  # characters that make no difference in a text


def accepts(
    category: str, functions: Sequence[Document], *, calls: Sequence[Call], gold: Sequence[Any]
) -> bool:
    """Whether `calls` are as many as `gold` and each is accepted; parallel ones in any order.

    `gold` is a list of ``{function: {argument: [accepted values]}}``.
    """
    if len(calls) != len(gold):
        return False
    if "parallel" not in category:
        name = next(iter(gold[0]))
        if "multiple" not in category:
            name = functions[0]["name"]
        return len(gold) == 1 and _accepts(functions, name, calls[0], wanted=gold[0])
    left = list(calls)
    for wanted in gold:
        name = next(iter(wanted))
        found = next((c for c in left if _accepts(functions, name, c, wanted=wanted)), None)
        if found is None:
            return False
        left.remove(found)
    return True


def _accepts(
    functions: Sequence[Document], name: str, call: Call, *, wanted: Mapping[str, Accepted]
) -> bool:
    """Whether a call is one of `name` with accepted arguments, none missing and none too many."""
    document = next((one for one in functions if one["name"] == name), None)
    if document is None or call.tool != name:
        return False
    accepted = next(iter(wanted.values()))
    parameters, given = document["parameters"], call.arguments
    if any(needed not in given for needed in parameters.get("required", ())):
        return False
    if any(key not in given and "" not in values for key, values in accepted.items()):
        return False
    described = parameters.get("properties", {})
    return all(
        key in described and key in accepted and _value(value, described[key], accepted[key])
        for key, value in given.items()
    )


def _value(given: Any, schema: Document, accepted: Sequence[Any]) -> bool:
    """Whether an argument has the described type and an accepted value."""
    kind: str = schema["type"]
    inner = schema.get("items", {}).get("type") if kind in LISTS else None
    expected, nested = TYPES.get(kind), TYPES.get(inner or "")
    if expected is None or (kind in LISTS and nested is None):
        return False
    value: Any = float(given) if kind == "float" and type(given) is int else given
    told = _told_type(accepted)
    found: type = type(value)
    if found is not expected:  # a variable's name where another type is described
        return found is told and value in accepted
    if nested is not None and not _items(value, nested, accepted):
        return False
    if told not in (None, expected):
        return value in accepted
    if expected is dict:
        return any(_dict(value, one) for one in accepted if one != "")
    if expected is list and nested is dict:
        return any(_dicts(value, one) for one in accepted)
    if expected is str:
        return _plain(value) in [_plain(one) for one in accepted if type(one) is str]
    if expected is list:
        return [_plain(item) for item in value] in [[_plain(x) for x in one] for one in accepted]
    return value in accepted


def _told_type(accepted: Sequence[Any]) -> type | None:
    """The type of the first accepted value that says something."""
    return next((type(one) for one in accepted if one != ""), None)


def _items(value: Sequence[Any], nested: type, accepted: Sequence[Any]) -> bool:
    """Whether every item has the described type, or that of some accepted list's own items."""
    return any(
        type(one) is not list
        or all(type(item) is nested or type(item) is _told_type(one) for item in value)
        for one in accepted
    )


def _dict(value: Mapping[str, Any], accepted: Any) -> bool:
    """Whether a mapping has accepted values under accepted keys, and all that are needed."""
    if not isinstance(value, dict) or not isinstance(accepted, dict):
        return False
    needed = (key for key, values in accepted.items() if "" not in values)
    return all(key in value for key in needed) and all(
        key in accepted and _plain(item) in [_plain(one) for one in accepted[key]]
        for key, item in value.items()
    )


def _dicts(value: Sequence[Any], accepted: Sequence[Any]) -> bool:
    """Whether a list of mappings matches another in their order."""
    pairs = zip(value, accepted, strict=False)
    return len(value) == len(accepted) and all(_dict(one, wanted) for one, wanted in pairs)


def _plain(value: Any) -> Any:
    """A text without what makes no difference; anything else as it is."""
    return IGNORED.sub("", value).lower().replace("'", '"') if type(value) is str else value
