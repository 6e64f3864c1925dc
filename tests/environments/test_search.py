"""Answering questions by searching, in the generated world and in real text."""

from __future__ import annotations

import asyncio
import re
from collections import Counter, defaultdict

import pytest

from agentrecipes.components import build
from agentrecipes.datasets.knowledge import vocabulary
from agentrecipes.errors import RecipeError
from agentrecipes.protocols import search_tags
from agentrecipes.records import Action, Call, Stop
from agentrecipes.testing.play import drive, play
from agentrecipes.testing.suites import EnvironmentSuite

PIECE = r"[ \n]?\S+|\s"  # how the tiny model's tokenizer cuts text
ROUNDS = {  # the oracle needs a turn a hop, and for conjunctions only what it cannot ask at once
    1: {"chain-1": 1, "chain-2": 2, "chain-3": 3, "conjunction-2": 2, "conjunction-3": 3},
    3: {"chain-1": 1, "chain-2": 2, "chain-3": 3, "conjunction-2": 1, "conjunction-3": 1},
}


def search(queries=3, top_k=2, **fields: object):
    """The search environment in the generated world."""
    parts = {
        "dataset": {"name": "world", "dev": 1000, "test": 1000},
        "retriever": {"name": "bm25", "top_k": top_k},
        "protocol": {"name": "search_tags", "queries_per_turn": queries},
    }
    return build("environment", {"name": "search", **parts, **fields})


def spoken(**fields: object):
    """The search environment on real questions."""
    return build("environment", {"name": "search", "dataset": "sample", **fields})


class TestSeveralQueries(EnvironmentSuite):
    played = 100

    @pytest.fixture
    def environment(self):
        return search()


class TestOneQuery(EnvironmentSuite):
    played = 100

    @pytest.fixture
    def environment(self):
        return search(queries=1)


class TestSample(EnvironmentSuite):
    @pytest.fixture
    def environment(self):
        return spoken()


@pytest.mark.parametrize("queries", [1, 3])
@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_a_perfect_policy_scores_one_on_every_type(queries, split):
    environment = search(queries)
    right, turns = Counter(), defaultdict(set)
    for seed, task in enumerate(environment.tasks(split)[:1000]):
        played = play(environment, task, seed=seed)
        right[task.type] += played.answer == played.task.gold_answers[0]
        turns[task.type].add(len(played.turns) - 1)
    assert right == dict.fromkeys(ROUNDS[queries], 200)
    assert turns == {kind: {rounds} for kind, rounds in ROUNDS[queries].items()}


def test_without_the_title_boost_the_ceiling_is_lower():
    # "Y 's mentor is X" then ties with "X 's mentor is Z", and the wrong one may come first.
    flat = search(retriever={"name": "bm25", "top_k": 1, "title_boost": 0})
    tasks = flat.tasks("dev")[:500]
    right = [play(flat, task).answer in task.gold_answers for task in tasks]
    assert 0.5 < sum(right) / len(right) < 0.99


def test_a_transcript_of_several_queries_reads_as_it_should():
    environment = search()
    task = next(task for task in environment.tasks("dev") if task.type == "conjunction-2")
    (one, r), (two, s) = task.data["plan"]
    played = play(environment, task)
    value, other = task.gold_answers[0].split(" and ")[::-1]
    [(ask, seen), (answer, last)] = played.turns
    assert ask == f"<think> next {r} {s} </think> <search> {one} 's {r}\n2. {two} 's {s} </search>"
    assert seen.startswith(f"\n<information> {one} 's {r} is {value} . ")
    assert f" .\n2. {two} 's {s} is {other} . " in seen
    assert seen.endswith(" . </information>\n")
    assert answer == f"<think> done </think> <answer> {other} and {value} </answer>"
    assert last == ""
    assert played.messages[0].content == task.question


@pytest.mark.parametrize("queries", [1, 3])
def test_every_word_of_a_well_played_episode_is_in_the_vocabulary(queries):
    environment, known = search(queries), set(vocabulary())
    for split in ("train", "dev", "test"):
        for agent in ("oracle", "random"):
            for task in environment.tasks(split)[:100]:
                played = play(environment, task, agent=agent, seed=1)
                texts = [text for turn in played.turns for text in turn]
                for text in (played.messages[0].content, *texts):
                    assert set(re.findall(PIECE, text)) <= known


def test_every_word_of_a_hint_is_in_the_vocabulary():
    reasons = [value for name, value in vars(search_tags).items() if name.isupper()]
    for reason in [reason for reason in reasons if isinstance(reason, str)]:
        assert set(re.findall(PIECE, search().protocol.hint(reason))) <= set(vocabulary())


def test_training_tasks_are_renamed_by_the_seed_and_held_out_tasks_never():
    environment = search()
    train, dev = environment.tasks("train")[3], environment.tasks("dev")[3]
    posed = [environment.open(train, seed).task for seed in (1, 1, 2)]
    assert posed[0] == posed[1]
    assert len({train.question, posed[0].question, posed[2].question}) == 3
    assert posed[0].id == train.id
    assert posed[0].data["supporting_ids"] == train.data["supporting_ids"]
    assert environment.open(dev, 1).task == dev


def test_attempts_under_one_seed_see_the_same_passages():
    environment = search()
    task = environment.tasks("train")[0]
    assert play(environment, task, seed=4) == play(environment, task, seed=4)
    assert play(environment, task, seed=4).turns != play(environment, task, seed=5).turns


def test_the_model_s_name_for_an_entity_finds_that_entity_s_passages():
    environment = search(top_k=4)
    task = environment.tasks("train")[0]
    episode = environment.open(task, 9)
    [(subject, _)], [(real, _)] = episode.task.data["plan"], task.data["plan"]
    assert subject != real
    shown = asyncio.run(episode.step(Action(calls=(Call("search", {"query": subject}),))))
    own = environment.open(environment.tasks("dev")[0], 9)  # the same world under its own names
    plain = asyncio.run(own.step(Action(calls=(Call("search", {"query": real}),))))
    assert f" {subject} 's " in shown.observation
    assert shown.observation.count(" is ") == plain.observation.count(" is ") > 1


def test_a_call_that_is_no_search_is_an_error_beside_the_others():
    episode = search().open(search().tasks("dev")[0], 0)
    subject, relation = episode.task.data["plan"][0]
    calls = (
        Call("python", {"code": "1"}),
        Call("search", {"query": f"{subject} 's {relation}"}),
        Call("search", {"q": 3}),
    )
    text = asyncio.run(episode.step(Action(calls=calls))).observation
    assert text.count("error: only search takes calls here") == 2
    assert f"2. {subject} 's {relation} is " in text


def test_nothing_found_is_an_empty_observation_in_a_formal_language_and_a_sentence_else():
    nothing = Action(calls=(Call("search", {"query": "zzzz"}),))
    formal = search().open(search().tasks("dev")[0], 0)
    assert asyncio.run(formal.step(nothing)).observation == "\n<information> </information>\n"
    natural = spoken().open(spoken().tasks("dev")[0], 0)
    assert "Nothing was found." in asyncio.run(natural.step(nothing)).observation


def test_real_text_comes_numbered_with_titles():
    environment = spoken(protocol={"name": "search_tags", "passage_characters": 80})
    task = environment.tasks("dev")[0]
    played = play(environment, task)
    first = played.turns[0][1]
    assert first.startswith("\n<information>\nDoc 1 (Title: ")
    assert first.count("\nDoc ") == 3
    assert len(first) < 600


def test_a_spoken_question_follows_instructions_in_one_user_message():
    environment = spoken()
    [message] = environment.messages("  Who was he ")
    assert message.role == "user"
    assert "<answer> answer </answer>" in message.content
    assert message.content.endswith("\nQuestion: Who was he?")


def test_prompts_of_one_s_own_replace_the_instructions():
    own = spoken(system="Be brief.", prompt="Q: {question} {other}")
    assert [(m.role, m.content) for m in own.messages("Who?")] == [
        ("system", "Be brief."),
        ("user", "Q: Who? {other}"),
    ]
    [first, second] = spoken(system="Be brief.").messages("Who?")
    assert (first.content, second.content) == ("Be brief.", "Who?")


def test_a_prompt_without_a_place_for_the_question_is_a_problem():
    assert [p.code for p in spoken(prompt="Answer!").rules(None)] == ["no_question"]
    assert list(spoken(prompt="Answer {question}").rules(None)) == []


def test_a_dataset_without_a_corpus_needs_a_retriever_with_one(tmp_path):
    (tmp_path / "q.jsonl").write_text('{"question": "a", "answer": "b"}\n')
    (tmp_path / "c.jsonl").write_text('{"id": "1", "title": "t", "text": "b"}\n')
    data = {"name": "jsonl", "path": str(tmp_path / "q.jsonl")}
    bare = spoken(dataset=data)
    assert [p.code for p in bare.rules(None)] == ["no_corpus"]
    given = spoken(dataset=data, retriever={"name": "bm25", "corpus": str(tmp_path / "c.jsonl")})
    assert list(given.rules(None)) == []
    played = play(given, given.tasks("dev")[0])
    assert (played.answer, played.stop) == ("b", Stop.ANSWERED)


def test_a_broken_corpus_stops_at_its_line(tmp_path):
    (tmp_path / "c.jsonl").write_text('{"id": "1", "text": "b"}\n{"id": "2"}\n')
    broken = search(retriever={"name": "bm25", "corpus": str(tmp_path / "c.jsonl")})
    with pytest.raises(RecipeError, match=r"c\.jsonl:2: title and text must be text"):
        broken.open(broken.tasks("dev")[0], 0)


def test_turns_run_out_for_an_agent_that_never_answers():
    environment = search(max_turns=3)
    episode = environment.open(environment.tasks("dev")[0], 0)
    ask = Action("next", (Call("search", {"query": "x"}),))
    played = asyncio.run(drive(environment, episode, lambda _: ask))
    assert (played.stop, played.answer, len(played.turns)) == (Stop.TURNS, None, 3)


def test_options_stand_below_the_question_and_a_letter_is_an_answer():
    exam = spoken(dataset={"name": "sample", "set": "medqa"})
    task = exam.tasks("dev")[0]
    asked = exam.open(task, 0).messages[-1].content
    lines = [f"{letter}) {text}" for letter, text in task.data["options"].items()]
    assert asked.endswith("?\n" + "\n".join(lines))
    assert exam.metrics == ("multiple_choice",)
    assert len(exam._dataset.corpus("dev")) == 400


def test_a_prompt_that_tells_a_gold_answer_is_warned_of():
    told = spoken(prompt="Say <answer> NBA Inside Stuff! </answer>. {question}")
    [warned] = told.rules(None)
    assert (warned.code, warned.path, warned.severity) == ("answer_in_prompt", "prompt", "warning")
    assert "'NBA Inside Stuff' of '5a88d89f554299206df2b37b'" in warned.message
    assert list(spoken(prompt="Say NBA inside. {question}", system="no").rules(None)) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        ("\n\n", "it is empty"),
        ("{", "no JSON"),
        ('{"title": "t", "text": "x"}', "no passage with id, title and text"),
        ('{"id": "1", "body": "x"}', "no passage with id, title and text"),
    ],
)
def test_a_corpus_that_opens_with_something_else_is_a_problem_of_check(tmp_path, text, message):
    (tmp_path / "c.jsonl").write_text(text)
    for name in ("bm25", "dense", "hybrid"):
        given = spoken(retriever={"name": name, "corpus": str(tmp_path / "c.jsonl")})
        [problem] = given.rules(None)
        assert (problem.code, problem.path) == ("bad_corpus", "retriever.corpus")
        assert message in problem.message
