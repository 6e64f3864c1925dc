"""Tasks from files of one's own, and the samples that are shipped."""

from __future__ import annotations

import gzip
import json

import pytest
from pydantic import ValidationError

from agentrecipes.components import build
from agentrecipes.datasets.jsonl import Jsonl
from agentrecipes.datasets.sample import Sample
from agentrecipes.errors import RecipeError
from agentrecipes.testing.play import play
from agentrecipes.testing.suites import DatasetSuite

ROW = {"question": "Where?", "golden_answers": ["Rome"], "type": "bridge", "hops": 2}


def write(path, *rows: object):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(path)


class TestOwnFile(DatasetSuite):
    @pytest.fixture
    def dataset(self, tmp_path):
        rows = [{**ROW, "id": f"q{n}", "supporting_ids": ["p1"]} for n in range(5)]
        corpus = write(tmp_path / "c.jsonl", {"id": "p1", "title": "Rome", "text": "Old."})
        return Jsonl(path=write(tmp_path / "own.jsonl", *rows), corpus_path=corpus)


class TestSample(DatasetSuite):
    @pytest.fixture
    def dataset(self):
        return Sample(set_="hotpotqa")


def test_a_line_without_a_split_is_in_every_split(tmp_path):
    rows = [{**ROW, "id": "a"}, {**ROW, "id": "b", "split": "dev"}]
    data = Jsonl(path=write(tmp_path / "d.jsonl", *rows))
    ids = {split: [task.id for task in data.tasks(split)] for split in ("train", "dev", "test")}
    assert ids == {"train": ["a"], "dev": ["a@dev", "b"], "test": ["a@test"]}


def test_a_folder_brings_its_splits_and_its_corpus(tmp_path):
    write(tmp_path / "train.jsonl", {**ROW, "id": "a", "split": "train"})
    write(tmp_path / "dev.jsonl", {**ROW, "id": "b", "split": "dev"})
    assert not Jsonl(path=str(tmp_path)).has_corpus
    write(tmp_path / "corpus.jsonl", {"id": 7, "title": "T", "text": "x"})
    data = Jsonl(path=str(tmp_path))
    assert [len(data.tasks(split)) for split in ("train", "dev", "test")] == [1, 1, 0]
    assert [passage.id for passage in data.corpus("dev")] == ["7"]


def test_every_key_but_the_task_s_own_is_data(tmp_path):
    data = Jsonl(path=write(tmp_path / "d.jsonl", {**ROW, "options": {"A": "x"}}))
    [task] = data.tasks("train")
    assert task.id == "d-0"
    assert task.data == {"type": "bridge", "hops": 2, "options": {"A": "x"}}
    assert data.fields == {"question", "golden_answers", "type", "hops", "options"}


def test_a_field_that_one_line_lacks_is_not_promised(tmp_path):
    rows = [{**ROW, "level": "hard"}, {"question": "No gold?"}]
    assert Jsonl(path=write(tmp_path / "d.jsonl", *rows)).fields == {"question"}


def test_other_forms_of_question_and_answer_are_read(tmp_path):
    talk = [[{"role": "user", "content": "Play chess."}], [{"role": "user", "content": "More."}]]
    rows = [{"question": "2 + 2?", "answer": 4}, {"question": talk}]
    first, second = Jsonl(path=write(tmp_path / "d.jsonl", *rows)).tasks("train")
    assert first.gold_answers == ("4",)
    assert (second.question, second.gold_answers) == ("Play chess.", ())


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**ROW, "golden_answers": ["Rome", "The."]}, "'The.' is empty once"),
        ({**ROW, "golden_answers": [" "]}, "is empty once"),
        ({**ROW, "golden_answers": "Rome", "question": " "}, "no question"),
        ({"golden_answers": ["x"]}, "no question"),
        ({**ROW, "golden_answers": {"a": 1}}, "must be a list of texts"),
        ({**ROW, "golden_answers": [None]}, "must be a list of texts"),
        ({**ROW, "split": "validation"}, "no split is called 'validation'"),
        ({**ROW, "id": "same"}, "is that of .*:1 too"),
        ([1], "is no object"),
    ],
)
def test_a_broken_line_is_refused_by_its_number(tmp_path, row, message):
    path = write(tmp_path / "d.jsonl", {**ROW, "id": "same"}, row)
    with pytest.raises(RecipeError, match=message) as caught:
        Jsonl(path=path).tasks("train")
    assert f"{path}:2" in str(caught.value)


def test_text_that_is_no_json_is_refused_by_its_line(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text('{"question": "a", "answer": "b"}\n\n{"question"\n', encoding="utf-8")
    with pytest.raises(RecipeError, match=r"d\.jsonl:3: no JSON"):
        Jsonl(path=str(path)).tasks("train")


@pytest.mark.parametrize(
    "content", [b"no gzip", gzip.compress(b"x" * 99, mtime=0)[:20], b"\xff\xfe"]
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, content):
    path = tmp_path / "d.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(RecipeError, match=r"d\.jsonl\.gz: cannot be read"):
        Jsonl(path=str(path)).tasks("train")


def test_the_corpus_keeps_its_name_in_yaml(tmp_path):
    part = build("dataset", {"name": "jsonl", "path": "a.jsonl", "corpus": "c.jsonl"})
    assert part.corpus_path == "c.jsonl"
    assert part.dump()["corpus"] == "c.jsonl"


def test_the_sample_is_large_enough_to_try_things_and_small_enough_to_ship():
    sample = build("dataset", {"name": "sample", "set": "hotpotqa"})
    assert [len(sample.tasks(split)) for split in ("train", "dev", "test")] == [120, 60, 60]
    assert {task.type for task in sample.tasks("train")} == {"bridge", "comparison"}
    assert all(len(task.data["supporting_titles"]) == 2 for task in sample.tasks("dev"))
    assert len(sample.corpus("dev")) > 2000


def test_a_sample_nobody_shipped_is_refused_with_a_hint():
    with pytest.raises(ValidationError, match="Did you mean 'hotpotqa'"):
        build("dataset", {"name": "sample", "set": "hotpot"})


def test_the_letter_a_as_gold_answer_is_the_text_of_its_option(tmp_path):
    options = {"A": "Rome", "B": "Oslo"}
    path = tmp_path / "exam.jsonl"
    line = {"question": "Where?", "options": options, "golden_answers": ["A", "Rome"]}
    path.write_text(json.dumps(line))
    assert Jsonl(path=str(path)).tasks("dev")[0].gold_answers == ("Rome",)
    path.write_text(json.dumps({**line, "golden_answers": ["B", "Oslo"]}))
    Jsonl(path=str(path)).tasks("dev")


@pytest.mark.parametrize("name", ["2wiki", "musique", "nq"])
def test_a_sample_has_its_gold_paragraphs_and_its_oracle_is_right(name):
    environment = build(
        "environment", {"name": "search", "dataset": {"name": "sample", "set": name}}
    )
    ids = {passage.id for passage in Sample(set=name).corpus("dev")}
    tasks = environment.tasks("dev")
    assert len(tasks) >= 25
    assert all(set(task.data["supporting_ids"]) <= ids for task in tasks)
    for task in tasks[:5]:
        assert play(environment, task).answer == task.gold_answers[0]
