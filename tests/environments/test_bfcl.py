"""One turn of function calls: what is shown, what ends it, and what it is worth."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from agentrecipes.components import build
from agentrecipes.environments.bfcl import as_json_schema, schemas
from agentrecipes.errors import RecipeError
from agentrecipes.records import Action, Call, Stop
from agentrecipes.rewards.bfcl import accepted
from agentrecipes.testing.play import play
from agentrecipes.testing.suites import DatasetSuite, EnvironmentSuite

SPLITS = ("train", "dev", "test")
HERMES = {"name": "hermes", "calls_per_turn": 16, "answers": "plain"}


def cases(**fields: object) -> Any:
    return build("environment", {"name": "bfcl", **fields})


class TestCases(DatasetSuite):
    @pytest.fixture
    def dataset(self):
        return build("dataset", "bfcl")


class TestPythonic(EnvironmentSuite):
    played = 6
    random_at_most = 0.5  # where no function fits, half of the random messages are right

    @pytest.fixture
    def environment(self):
        return cases()

    def score(self, played):
        return build("reward", "bfcl").score(played.view)

    def test_a_random_agent_is_understood_and_loses(self, environment):
        played = [play(environment, t, agent="random", seed=3) for t in self.tasks(environment)]
        assert all(action.valid for one in played for action in one.actions)
        assert sum(map(self.score, played)) / len(played) <= self.random_at_most


class TestHermes(TestPythonic):
    @pytest.fixture
    def environment(self):
        return cases(protocol=HERMES)


@pytest.mark.parametrize("protocol", [None, HERMES])
def test_the_gold_calls_of_every_shipped_case_survive_being_written_and_read(protocol):
    environment = cases(**({"protocol": protocol} if protocol else {}))
    tasks = [task for split in SPLITS for task in environment.tasks(split)]
    assert len(tasks) == 533
    for task in tasks:
        said = environment.oracle(task)(None)
        read = environment.protocol.parse(environment.protocol.write(said))
        assert accepted(task.data, read.calls), task.id


def test_bfcl_s_types_become_those_of_json_schema():
    told = as_json_schema(
        {
            "type": "dict",
            "properties": {
                "at": {"type": "tuple", "items": {"type": "float"}, "description": "x and y"},
                "what": {"type": "any", "default": None},
                "how": {"type": "dict", "properties": {"n": {"type": "integer"}}},
            },
            "required": ["at"],
        }
    )
    assert told == {
        "type": "object",
        "properties": {
            "at": {"type": "array", "items": {"type": "number"}, "description": "x and y"},
            "what": {"default": None},
            "how": {"type": "object", "properties": {"n": {"type": "integer"}}},
        },
        "required": ["at"],
    }


def test_the_functions_of_a_case_are_the_tools_of_its_episode():
    environment = cases()
    first, second = environment.tasks("dev")[:2]
    system, user = environment.open(first, 0).messages
    assert user.content == first.question
    assert json.dumps(schemas(first)[0], ensure_ascii=False) in system.content
    assert schemas(second)[0]["name"] not in system.content
    assert '"dict"' not in system.content
    [user] = cases(instructions="none").open(first, 0).messages
    assert user.content == first.question
    [user] = cases(instructions="user").open(first, 0).messages
    assert user.content.endswith(f"\n\n{first.question}")


def test_a_case_s_own_system_message_follows_the_instructions():
    environment = cases(system="Be brief.")
    tasks = [task for split in SPLITS for task in environment.tasks(split)]
    told = next(t for t in tasks if t.data["messages"][0][0] == "system")
    system = environment.open(told, 0).messages[0].content
    assert system.startswith("Be brief.\n\nAnswer the question")
    assert system.endswith(told.data["messages"][0][1])


def test_whatever_is_said_is_the_end():
    environment = cases()
    task = environment.tasks("dev")[0]
    played = play(environment, task)
    assert (played.stop, len(played.turns)) == (Stop.ANSWERED, 1)
    assert played.answer == played.turns[0][0].partition("\n")[2]
    assert environment.on_invalid.reply == "stop"


def test_the_oracle_calls_something_where_any_call_is_right():
    environment = cases(dataset={"name": "bfcl", "categories": ["live_relevance"]})
    [task, *_] = environment.tasks("train")
    assert environment.oracle(task)(None).calls == (Call(task.data["functions"][0]["name"], {}),)
    other = cases(dataset={"name": "bfcl", "categories": ["irrelevance"]})
    said = other.oracle(other.tasks("train")[0])(None)
    assert said == Action("next", answer="none")


def codes(**fields: object) -> list[tuple[str, str]]:
    found = cases(**fields).rules(SimpleNamespace())
    return [(problem.code, problem.suggestion) for problem in found]


def test_a_protocol_that_cannot_say_what_a_case_wants_is_a_problem():
    assert codes() == []
    assert codes(protocol="hermes") == [("too_few_calls", "Write `calls_per_turn: 8` or more.")]
    assert codes(protocol="search_tags")[0][0] == "tool_without_a_call"


def line(**fields: object) -> dict[str, object]:
    function = {"name": "f", "parameters": {"type": "dict", "properties": {}, "required": []}}
    question = [[{"role": "user", "content": "Call f."}]]
    whole = {"id": "a", "category": "simple_python", "question": question, "function": [function]}
    return {**whole, "ground_truth": [{"f": {}}], **fields}


def read(folder, *lines: dict[str, object]) -> Any:
    (folder / "own.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return build("dataset", {"name": "bfcl", "path": str(folder / "own.jsonl")})


def test_cases_of_one_s_own_are_in_every_split_that_they_do_not_name(tmp_path):
    own = read(
        tmp_path, line(), line(id="b", split="dev"), line(id="c", category="multi_turn_base")
    )
    ids = [[task.id for task in own.tasks(split)] for split in SPLITS]
    assert ids == [["a@train"], ["a@dev", "b"], ["a@test"]]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"category": None}, "no category"),
        ({"function": {}}, "'function' is no list of functions"),
        ({"function": [{"name": "f"}]}, "'function' is no list of functions"),
        ({"question": []}, "no question"),
        ({"question": [[{"role": "user"}]]}, "no question"),
        ({"ground_truth": None}, "a case of simple_python needs its ground_truth"),
        ({"split": "tst"}, "no split is called 'tst'. Write one of train, dev, test"),
    ],
)
def test_a_line_that_is_no_case_is_named(tmp_path, wrong, said):
    with pytest.raises(RecipeError, match=rf"own.jsonl:1: {said}"):
        read(tmp_path, line(**wrong)).tasks("dev")


def test_an_unknown_category_is_refused():
    with pytest.raises(ValueError, match="no category is called 'simpel'"):
        build("dataset", {"name": "bfcl", "categories": ["simpel"]})
