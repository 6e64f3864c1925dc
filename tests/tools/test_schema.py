"""Arguments against a JSON Schema: each keyword that is checked, and what is said."""

from __future__ import annotations

import pytest

from agentrecipes.tools.schema import faults

POINT = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}


def one(**about: object):
    """A schema with one argument."""
    return {"type": "object", "properties": {"item": about}, "$defs": {"Point": POINT}}


@pytest.mark.parametrize(
    ("about", "good", "bad", "said"),
    [
        ({"type": "string"}, "tea", 3, "item must be string, but got 3"),
        ({"type": "integer"}, 2.0, 2.5, "item must be integer, but got 2.5"),
        ({"type": "integer"}, 0, True, "item must be integer, but got true"),
        ({"type": "number"}, 1.5, "1.5", 'item must be number, but got "1.5"'),
        ({"type": "boolean"}, False, 0, "item must be boolean, but got 0"),
        ({"type": "array"}, [1], {}, "item must be array, but got {}"),
        ({"type": "null"}, None, "", 'item must be null, but got ""'),
        ({"type": ["string", "null"]}, None, 1, "item must be string or null, but got 1"),
        ({"enum": ["s", "m"]}, "m", "l", 'item must be one of "s", "m", but got "l"'),
        ({"enum": [1]}, 1, True, "item must be one of 1, but got true"),
        ({"const": 4}, 4, 5, "item must be 4, but got 5"),
        ({"minimum": 2}, 2, 1, "item must be at least 2, but got 1"),
        ({"maximum": 2}, 2, 3, "item must be at most 2, but got 3"),
        ({"exclusiveMinimum": 2}, 3, 2, "item must be above 2, but got 2"),
        ({"exclusiveMaximum": 2}, 1, 2, "item must be below 2, but got 2"),
        ({"minLength": 2}, "ab", "a", "item must have at least 2 characters, but has 1"),
        ({"maxLength": 2}, "ab", "abc", "item must have at most 2 characters, but has 3"),
        ({"minItems": 1}, [0], [], "item must have at least 1 entries, but has 0"),
        ({"maxItems": 1}, [0], [0, 1], "item must have at most 1 entries, but has 2"),
        ({"items": {"type": "string"}}, ["a"], ["a", 1], "item[1] must be string, but got 1"),
        ({"anyOf": [{"type": "string"}, {"minimum": 3}]}, 3, 2, "item must be string, but got 2"),
        ({"$ref": "#/$defs/Point"}, {"x": 1}, {"x": "1"}, 'item.x must be number, but got "1"'),
        ({"$ref": "#/$defs/Point"}, {"x": 1, "y": 2}, {}, "item.x is missing"),
        (
            {"additionalProperties": False, **POINT},
            {"x": 1},
            {"x": 1, "z": 2},
            "no argument is called 'item.z'. Known: x.",
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            {"a": "b"},
            {"a": 1},
            "item.a must be string, but got 1",
        ),
    ],
)
def test_a_keyword_holds_or_says_what_is_wrong(about, good, bad, said):
    assert faults({"item": good}, one(**about)) == []
    assert faults({"item": bad}, one(**about)) == [said]


def test_every_fault_is_told_at_once():
    schema = {**one(type="string"), "required": ["item", "count"]}
    assert faults({"itme": "tea"}, schema) == [
        "item is missing",
        "count is missing",
        "no argument is called 'itme'. Did you mean 'item'?",
    ]


def test_a_schema_may_allow_more_than_it_lists():
    assert faults({"other": 1}, {"additionalProperties": True}) == []
    assert faults({}, {}) == []


def test_keywords_that_are_not_checked_say_nothing():
    assert faults({"item": "tea"}, one(type="string", format="date", pattern="^x$")) == []


def test_a_value_without_end_in_a_schema_of_itself_is_refused():
    tree = {"type": "array", "items": {"$ref": "#/$defs/Tree"}}
    value: list[object] = []
    for _ in range(5000):
        value = [value]
    schema = {"properties": {"item": {"$ref": "#/$defs/Tree"}}, "$defs": {"Tree": tree}}
    assert faults({"item": [[], [[]]]}, schema) == []
    assert faults({"item": value}, schema) == ["the arguments are nested too deep"]


def test_a_long_value_is_told_in_short():
    [said] = faults({"item": ["x" * 999]}, one(type="string"))
    assert len(said) < 100
