"""Function calls against what BFCL accepts: its own rules, and ours, which are the same."""

from __future__ import annotations

import gzip
import json
import os
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.rewards.call_faults import gold, variants

from agentrecipes.components import build
from agentrecipes.errors import MissingExtra
from agentrecipes.records import Call, Stop, Task
from agentrecipes.rewards import function_calls
from agentrecipes.rewards.bfcl import accepted
from agentrecipes.rewards.protocol import View

VERDICTS = Path(__file__).parent / "bfcl_verdicts.json.gz"  # of the official checker, by case
SHOPS = {
    "name": "shop.find",
    "parameters": {
        "type": "dict",
        "properties": {
            "city": {"type": "string"},
            "limit": {"type": "integer"},
            "price": {"type": "float"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "area": {"type": "dict", "properties": {}},
        },
        "required": ["city"],
    },
}
WANTED = {
    "shop.find": {
        "city": ["New York, NY", "NYC"],
        "limit": [5, ""],
        "price": [2.5, ""],
        "tags": [["Open", "Late"], ""],
        "area": [{"from": [1], "to": ["far", ""]}, ""],
    }
}


def view(category: str, *calls: Call, wanted: object = (WANTED,)) -> View:
    data = {"category": category, "functions": (SHOPS,), "ground_truth": wanted}
    task = Task("t", "dev", "?", (), data)
    return View(task, ("a",), ("",), (calls,), (True,), None, Stop.ANSWERED)


def score(category: str, *calls: Call, **more: object) -> float | None:
    return build("reward", "bfcl").score(view(category, *calls, **more))


def find(**arguments: object) -> Call:
    return Call("shop.find", arguments)


@pytest.mark.parametrize(
    "call",
    [
        find(city="NYC"),
        find(city="new-york ny"),  # blanks, signs and case make no difference
        find(city="NYC", price=2.5, limit=5),
        find(city="NYC", tags=["open", "LATE"]),
        find(city="NYC", area={"from": 1}),
        find(city="NYC", area={"from": 1, "to": "Far"}),
    ],
)
def test_what_a_case_accepts_scores_one(call):
    assert score("simple_python", call) == 1.0


@pytest.mark.parametrize(
    "call",
    [
        Call("shop_find", {"city": "NYC"}),
        find(),
        find(limit=5),
        find(city="NYC", more=1),
        find(city="Boston"),
        find(city=7),
        find(city="NYC", limit=5.0),  # a whole number was wanted
        find(city="NYC", limit="5"),
        find(city="NYC", price=2),
        find(city="NYC", tags=["Late", "Open"]),
        find(city="NYC", tags=["Open", 1]),
        find(city="NYC", area={"to": "far"}),
        find(city="NYC", area={"from": 1, "by": 2}),
    ],
)
def test_a_wrong_name_a_missing_an_extra_or_a_wrong_argument_scores_zero(call):
    assert score("simple_python", call) == 0.0


def test_parallel_calls_may_stand_in_any_order_and_must_be_as_many():
    other = {"shop.find": {"city": ["Rome"]}}
    calls = find(city="Rome"), find(city="NYC")
    assert score("parallel", *calls, wanted=(WANTED, other)) == 1.0
    assert score("parallel", calls[0], calls[0], wanted=(WANTED, other)) == 0.0
    assert score("parallel", calls[1], wanted=(WANTED, other)) == 0.0
    assert score("simple_python", find(city="NYC"), find(city="NYC")) == 0.0


def test_irrelevance_wants_no_call_and_relevance_any():
    assert score("live_irrelevance", wanted=()) == 1.0
    assert score("irrelevance", find(), wanted=()) == 0.0
    assert score("live_relevance", wanted=()) == 0.0
    assert score("live_relevance", Call("x", {}), wanted=()) == 1.0


def test_a_task_that_is_no_case_has_no_score():
    empty = View(Task("t", "dev", "?"), ("a",), ("",), ((),), (True,), None, Stop.ANSWERED)
    assert build("reward", "bfcl").score(empty) is None


def shipped() -> list[Task]:
    cases = build("dataset", "bfcl")
    return [task for split in ("train", "dev", "test") for task in cases.tasks(split)]


def verdicts(task: Task, official: bool) -> str:
    return "".join(
        str(int(accepted(task.data, calls, official=official))) for calls in variants(task)
    )


def test_every_shipped_case_accepts_its_gold_calls_and_none_with_a_fault():
    for task in shipped():
        calls = gold(task)
        assert accepted(task.data, calls) == (not task.type.endswith("_relevance"))
        if calls:
            first, rest = calls[0], calls[1:]
            [[needed, *_], *_] = [
                [*f["parameters"]["required"], None]
                for f in task.data["functions"]
                if f["name"] == first.tool
            ]
            assert not accepted(task.data, (Call(first.tool + "x", first.arguments), *rest))
            extra = {**first.arguments, "no such": 1}
            assert not accepted(task.data, (Call(first.tool, extra), *rest))
            fewer = {k: v for k, v in first.arguments.items() if k != needed}
            assert needed is None or not accepted(task.data, (Call(first.tool, fewer), *rest))


def test_own_verdicts_are_the_official_ones_on_every_shipped_case():
    """The stored ones are those of bfcl-eval 2026.3.23, 1 or 0 for each of `variants`."""
    stored = json.loads(gzip.decompress(VERDICTS.read_bytes()))
    own = {task.id: verdicts(task, official=False) for task in shipped()}
    assert own == stored
    said = "".join(own.values())
    assert 0.1 < said.count("1") / len(said) < 0.9
    assert len(said) > 15_000


def test_the_stored_verdicts_are_those_of_the_installed_checker():
    """``SNAPSHOTS=write`` makes the file; the package brings too much along for the dev set."""
    pytest.importorskip("bfcl_eval")
    told = {task.id: verdicts(task, official=True) for task in shipped()}
    if os.environ.get("SNAPSHOTS") == "write":
        VERDICTS.write_bytes(gzip.compress(json.dumps(told).encode(), 9, mtime=0))
    assert told == json.loads(gzip.decompress(VERDICTS.read_bytes()))


@pytest.mark.skipif(find_spec("bfcl_eval") is not None, reason="bfcl-eval is installed here")
def test_without_its_package_the_official_checker_is_a_missing_extra():
    official = build("reward", {"name": "bfcl", "checker": "official"})
    with pytest.raises(MissingExtra, match=r"pip install --no-deps bfcl-eval==2026.3.23") as told:
        official.require()
    assert told.value.exit_code == 3
    [problem] = official.rules(SimpleNamespace())
    assert (problem.code, problem.path) == ("missing_extra", "checker")
    assert problem.suggestion == "Install it: pip install --no-deps bfcl-eval==2026.3.23."


def test_own_checking_needs_nothing():
    own = build("reward", "bfcl")
    own.require()
    assert list(own.rules(SimpleNamespace())) == []


def test_a_description_without_types_accepts_nothing():
    odd = {"name": "f", "parameters": {"properties": {"a": {"type": "number"}}, "required": []}}
    wanted = {"f": {"a": [1]}}
    assert not function_calls.accepts(
        "simple_python", [odd], calls=[Call("f", {"a": 1})], gold=[wanted]
    )
