"""RAGAS' metrics asked of a judge over HTTP; and without RAGAS the command that installs it."""

from __future__ import annotations

import gzip
import json
import re
import socket
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.judges.server import served
from tests.rewards.views import asked, played

from agentrecipes.cli.main import main
from agentrecipes.components import build
from agentrecipes.judges.occasion import Occasion, opened
from agentrecipes.recipe.schema import RewardEntry
from agentrecipes.rollout.score import score_views

with_ragas = [
    pytest.mark.ragas,
    pytest.mark.skipif(find_spec("ragas") is None, reason="RAGAS is not installed"),
    pytest.mark.filterwarnings("ignore"),  # RAGAS' own, of what it imports
]
RECIPE = """\
name: small
model: tiny
environment: {name: search, dataset: {name: world, train: 20, dev: 10, test: 10}}
rewards: [{name: ragas_faithfulness, judge: {name: openai, model: m}}]
algorithm: grpo
iterations: 100
"""
SHIPPED = Path(__file__).parents[1] / "golden" / "ragas"
SEEN = "Rome is the capital of Italy."


def reward(heard, name, **fields: object):
    judge = {"name": "openai", "model": "m", "base_url": heard.url, "backoff_seconds": 0.01}
    return build("reward", {"name": name, "judge": judge, **fields})


def view(number=0):
    turn = ("look", f"{SEEN} {number}", ())
    return played(turn, ("say", "", ()), golds=("Rome",), answer="Rome, the capital.")


def test_a_metric_that_does_not_fit_or_lacks_something_is_a_problem():
    judge = {"name": "openai", "model": "m"}

    def told(**fields: object) -> list[tuple[str, str]]:
        part = build("reward", {"name": "ragas", "judge": judge, **fields})
        return [(problem.code, problem.path) for problem in part.rules(None)]

    assert told(metric="faithfulness") == []
    assert told(metric="faithfullness") == [("wrong_value", "metric")]
    assert told(metric="answer_relevancy") == [("missing_key", "")]
    assert told(metric="faithfulness", embeddings=judge) == [("no_effect", "embeddings")]


@pytest.mark.skipif(find_spec("ragas") is not None, reason="RAGAS is installed")
def test_without_ragas_the_command_ends_with_the_one_that_installs_it(tmp_path, capsys):
    recipe, file = tmp_path / "small.yaml", tmp_path / "one.jsonl"
    recipe.write_text(RECIPE)
    turns = [{"action": "<search> q </search>", "observation": SEEN}]
    turns.append({"action": "<answer> Rome </answer>", "observation": None})
    file.write_text(json.dumps({"task": {"question": "Where?"}, "turns": turns}))
    for words in (["score", str(recipe), str(file)], ["run", str(recipe)]):
        with pytest.raises(SystemExit) as end:
            main([*words, *(["--runs-dir", str(tmp_path / "runs")] if words[0] == "run" else [])])
        assert end.value.code == 3
        said = capsys.readouterr().err
        assert "pip install ragas==0.4.3 langchain-community==0.4.1" in said
    with pytest.raises(SystemExit) as end:
        main(["check", str(recipe)])
    assert end.value.code == 0


def rated(first, second):
    """Replies of two raters, told apart by their prompts."""
    prompts: list[str] = []

    def reply(prompt) -> str:
        prompts.append(prompt)
        return json.dumps({"rating": (first, second)[(len(prompts) - 1) % 2]})

    return reply


@pytest.mark.parametrize(("first", "second", "value"), [(2, 2, 1.0), (1, 2, 0.75), (0, 0, 0.0)])
class TestContextRelevance:
    pytestmark = with_ragas

    def test_it_is_half_of_the_mean_of_two_ratings(self, first, second, value):
        with served(rated(first, second)) as heard:
            assert reward(heard, "ragas_context_relevance").score(view()) == value
            assert all(SEEN in prompt for prompt in heard.prompts)


def faithful(prompt):
    """One of two statements follows."""
    if "verdict" in prompt:
        verdicts = [("Rome is in Italy.", 1), ("Rome is large.", 0)]
        told = [{"statement": s, "reason": "r", "verdict": v} for s, v in verdicts]
        return json.dumps({"statements": told})
    return (
        "```json\n" + json.dumps({"statements": ["Rome is in Italy.", "Rome is large."]}) + "\n```"
    )


class TestWithRagas:
    pytestmark = with_ragas

    def test_faithfulness_is_the_share_of_statements_that_follow(self):
        with served(faithful) as heard:
            assert reward(heard, "ragas_faithfulness").score(view()) == 0.5
            assert len(heard.prompts) == 2

    def test_a_reply_that_is_no_json_is_null_counted_and_kept(self):
        for name in ("ragas_faithfulness", "ragas_context_relevance"):
            with (
                served(lambda prompt: "As an AI I cannot.") as heard,
                opened(Occasion(name)) as occasion,
            ):
                assert reward(heard, name).score(view()) is None
            assert {one.reply for one in occasion.heard} == {"As an AI I cannot."}
            assert occasion.problem == "the judge's reply could not be read"

    def test_one_of_two_ratings_that_cannot_be_read_is_not_averaged_away(self):
        replies = iter(['{"rating": 2}', "two"])
        with served(lambda prompt: next(replies)) as heard:
            assert reward(heard, "ragas_context_relevance").score(view()) is None

    def test_twenty_transcripts_side_by_side_and_again_without_a_server(self, tmp_path):
        views = [view(number) for number in range(20)]

        def reply(prompt) -> str:
            if "rating" not in prompt:
                return faithful(prompt)
            return json.dumps({"rating": int(re.findall(r"Italy\. (\d+)", prompt)[-1]) % 3})

        with served(reply, seconds=0.05) as heard:
            entries = [
                RewardEntry(part=reward(heard, name), cache=str(tmp_path / "kept"))
                for name in ("ragas_context_relevance", "ragas_faithfulness")
            ]
            first = score_views(views, entries)
        again = score_views(views, entries)
        assert [one.parts for one in again] == [one.parts for one in first]
        assert [one.total for one in first] == [0.5 + number % 3 / 2 for number in range(20)]
        assert heard.most > 4

    def test_relevancy_needs_vectors_and_is_their_likeness(self):
        def reply(prompt) -> str:
            return json.dumps({"question": "Where is Rome?", "noncommittal": 0})

        def vector(text) -> tuple[int, str]:
            return 200, json.dumps({"data": [{"embedding": [1.0, 0.0] if "?" in text else [0, 1]}]})

        with served(reply) as heard, served(vector) as far:
            vectors = {"name": "openai_embeddings", "model": "e", "base_url": far.url}
            mine = reward(heard, "ragas_answer_relevancy", embeddings=vectors)
            assert mine.score(view()) == pytest.approx(1.0)

    def test_an_unanswered_trajectory_is_not_faithful_and_nobody_is_asked(self):
        with served(faithful) as heard:
            assert reward(heard, "ragas_faithfulness").score(asked("Rome")) == 0.0
            assert reward(heard, "ragas_context_relevance").score(asked("Rome")) is None
            assert heard.prompts == []

    def test_the_shipped_transcripts_are_judged_again_bit_for_bit_without_a_network(
        self, monkeypatch, capsys
    ):
        def nobody(*_: object) -> None:
            raise AssertionError("a connection was tried")

        monkeypatch.setattr(socket.socket, "connect", nobody)
        files = [str(SHIPPED / name) for name in ("recipe.yaml", "transcripts.jsonl")]
        with pytest.raises(SystemExit) as end:
            main(["score", *files, "--json"])
        assert end.value.code == 0
        again = json.loads(capsys.readouterr().out)["scores"]
        kept = json.loads((SHIPPED / "scores.json").read_text())
        assert [{key: one[key] for key in kept[0]} for one in again] == kept
        problems = Counter(each["problem"] for one in again for each in one.get("judgements", ()))
        # three long questions, each asked for two ratings and for statements
        assert problems["the judge's reply could not be read"] == 9


def test_the_shipped_judgement_tells_transcripts_apart_and_says_what_it_does_not_know():
    kept = json.loads((SHIPPED / "scores.json").read_text())
    lines = (SHIPPED / "transcripts.jsonl").read_text("utf-8").splitlines()
    assert [one["id"] for one in kept] == [json.loads(line)["id"] for line in lines]
    assert len({one["id"] for one in kept}) == 20
    relevance = Counter(one["parts"]["ragas_context_relevance"] for one in kept)
    faithful = Counter(one["parts"]["ragas_faithfulness"] for one in kept)
    assert set(relevance) == {0.0, 0.5, 1.0, None}
    assert set(faithful) == {0.0, 1.0, None}
    # three long questions, and one that was answered without a search
    assert relevance[None] == faithful[None] == 4
    said = gzip.decompress((SHIPPED / "judge.jsonl.gz").read_bytes()).decode().splitlines()
    unreadable = [
        reply for line in said if not (reply := json.loads(line)["reply"]).startswith("{")
    ]
    assert len(unreadable) == 9
