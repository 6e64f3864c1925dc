from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import Field, field_validator

from agentrecipes.cli.schema import part_schema, recipe_schema
from agentrecipes.components import FOLDER, Component, PartOf, names


class Bell(Component):
    """Rings."""

    part_name = "bell"
    kind = "tool"

    times: Annotated[int, Field(ge=1, le=9)] = 1  # how often
    loud: bool = False
    inner: Annotated[Any, PartOf("retriever")] | None = None
    sizes: tuple[float, ...] = ()
    levels: tuple[int, ...]

    @field_validator("levels", mode="before")
    @classmethod
    def _spread(cls, value: object) -> object:
        return [value] if isinstance(value, int) else value


def test_a_part_is_an_object_told_by_its_name_with_its_fields():
    schema = part_schema(Bell)
    assert schema["properties"]["name"] == {"const": "bell"}
    assert schema["required"] == ["name", "levels"]
    assert schema["additionalProperties"] is False
    times, _ = schema["properties"]["times"]["anyOf"]
    assert times == {"type": "integer", "minimum": 1, "maximum": 9}
    assert schema["properties"]["times"]["description"] == "how often"
    assert schema["properties"]["inner"] == {
        "anyOf": [{"$ref": "#/$defs/retriever"}, {"type": "null"}]
    }
    assert schema["properties"]["sizes"]["items"]["anyOf"][0] == {"type": "number"}


def test_any_scalar_of_a_part_may_be_a_schedule():
    _, schedule = part_schema(Bell)["properties"]["times"]["anyOf"]
    assert schedule == {"$ref": "#/$defs/schedule"}


def test_a_field_with_a_short_form_takes_anything_that_its_validator_reads():
    assert part_schema(Bell)["properties"]["levels"] == {}


def test_every_part_and_every_short_form_is_in_the_schema():
    schema = recipe_schema()
    for kind in FOLDER:
        short, *long = schema["$defs"][kind]["anyOf"]
        assert short == {"enum": names(kind)}
        assert [part["properties"]["name"]["const"] for part in long] == names(kind)


def test_every_reference_leads_somewhere():
    schema = recipe_schema()
    text = json.dumps(schema)
    wanted = {piece.partition('"')[0] for piece in text.split('"#/$defs/')[1:]}
    assert wanted <= set(schema["$defs"])
    assert {"stage", "overlay", "schedule", "reward_entry"} <= wanted


def test_a_reward_inside_another_may_have_a_weight_beside_its_own_fields():
    definitions = recipe_schema()["$defs"]
    rewards = {
        part["properties"]["name"]["const"]: part for part in definitions["reward"]["anyOf"][1:]
    }
    inside = {"$ref": "#/$defs/weighted_reward"}
    assert rewards["gate"]["properties"]["then"]["items"] == inside
    assert rewards["gate"]["properties"]["else"]["anyOf"][1]["items"] == inside
    assert "weight" not in rewards["token_f1"]["properties"]
    _, *held = definitions["weighted_reward"]["anyOf"]
    assert all(set(part["properties"]) >= {"name", "weight"} for part in held)
    assert not any("scope" in part["properties"] for part in held)


def test_a_name_in_place_of_rewards_is_a_shipped_preset():
    options = recipe_schema()["properties"]["rewards"]["anyOf"]
    assert "search_r1_v03" in options[1]["enum"]


def test_a_profile_may_change_a_part_without_naming_it():
    overlay = recipe_schema()["$defs"]["overlay"]["properties"]
    assert {"type": "object", "not": {"required": ["name"]}} in overlay["environment"]["anyOf"]
    assert overlay["stages"]["type"] == "object"


def test_the_command_prints_the_schema(command):
    done = command("schema")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
