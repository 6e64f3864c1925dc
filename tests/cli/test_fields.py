from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from agentrecipes.cli.fields import comments_of, field_lines, type_name
from agentrecipes.components import Fields, PartOf


class Inner(Fields):
    """Holds one number."""

    size: int = 3  # in tokens


class Outer(Fields):
    """Shows every form a comment can take."""

    plain: Annotated[int, Field(ge=1)] = 2  # how many
    spread: Literal["fixed", "ready"] | None = None  # fixed: in order; null: the engine's own
    long: float = 0.5  # begins here
    # and ends here
    silent: str = "x"
    inner: Inner = Inner()
    needed: Annotated[Any, PartOf("reward")]
    renamed_: Annotated[str | None, Field(alias="as")] = None  # told apart by this


class Child(Outer):
    """Changes one field."""

    plain: int = 7  # how many, here


def test_the_comment_beside_a_field_is_its_meaning():
    assert comments_of(Outer) == {
        "plain": "how many",
        "spread": "fixed: in order; null: the engine's own",
        "long": "begins here and ends here",
        "silent": "",
        "inner": "",
        "needed": "",
        "renamed_": "told apart by this",
    }


def test_a_subclass_says_its_own_meaning_and_keeps_the_others():
    assert comments_of(Child)["plain"] == "how many, here"
    assert comments_of(Child)["long"] == "begins here and ends here"


def test_a_field_is_shown_with_type_limits_and_default():
    lines = {line.name: line for line in field_lines(Outer)}
    assert (lines["plain"].type, lines["plain"].limits, lines["plain"].default) == ("int", "≥ 1", 2)
    assert lines["spread"].type == "fixed | ready | null"
    assert lines["needed"].required
    assert lines["needed"].type == "a reward"
    assert lines["inner"].default == {"size": 3}
    assert lines["as"].meaning == "told apart by this"
    assert "renamed_" not in lines


def test_types_are_in_the_words_of_yaml():
    assert type_name(bool) == "true | false"
    assert type_name(tuple[str, ...]) == "list of text"
    assert type_name(tuple[int, float]) == "[int, float]"
    assert type_name(Mapping[str, int]) == "mapping"
    assert type_name(dict[str, Any]) == "mapping"
    assert type_name(Annotated[int, Field(gt=0)] | None) == "int > 0 | null"
    assert type_name(Any) == "anything"
    assert type_name(Annotated[Any, PartOf("tool")] | None) == "a tool | null"
    assert type_name(Annotated[Any, PartOf("engine")]) == "an engine"
    assert type_name(Annotated[Any, PartOf("demonstrations")]) == "demonstrations"
