"""BM25: what it finds, in which order, how fast."""

from __future__ import annotations

import json
import math

import pyarrow
import pyarrow.parquet
import pytest
from tests.tolerances import FLOAT32

from agentrecipes.components import build
from agentrecipes.datasets.sample import Sample
from agentrecipes.datasets.world import World
from agentrecipes.errors import RecipeError
from agentrecipes.records import Passage
from agentrecipes.retrievers.bm25 import KEPT_FROM, Bm25, Table, words
from agentrecipes.testing.suites import RetrieverSuite


class TestBm25(RetrieverSuite):
    @pytest.fixture
    def retriever(self):
        return Bm25()


def passages(*texts: str):
    return tuple(Passage(str(n), "", text) for n, text in enumerate(texts))


def test_scores_are_those_of_the_formula():
    # Lucene's BM25, k1 = 1.5, b = .75: idf = ln(1 + (N - n + .5) / (n + .5)), times
    # f / (f + k1 (1 - b + b length / mean length)). N = 3, lengths 2, 4, 3, mean 3.
    table = Bm25(title_boost=0, k1=1.5, b=0.75).open(
        passages("red fox", "red red hen sat", "a grey owl")
    )
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))  # "red" is in two of three
    expected = {
        0: idf * 1 / (1 + 1.5 * (0.25 + 0.75 * 2 / 3)),
        1: idf * 2 / (2 + 1.5 * (0.25 + 0.75 * 4 / 3)),
    }
    found = table.scored("red", 3)
    assert [passage.id for passage, _ in found] == ["1", "0"]
    for passage, score in found:
        wanted = expected[int(passage.id)]
        assert score == pytest.approx(wanted, rel=FLOAT32["rtol"], abs=FLOAT32["atol"])


def test_stop_words_are_not_looked_for_unless_there_is_nothing_else():
    corpus = passages("the who", "the the the end", "red fox")
    assert [p.id for p in Bm25().open(corpus).search(["is it the fox"])[0]] == ["2"]
    assert [p.id for p in Bm25().open(corpus).search(["the"])[0]] == ["1", "0"]
    kept = Bm25(stop_words="none").open(corpus).search(["the fox"])
    assert [p.id for p in kept[0]] == ["2", "1", "0"]


def test_a_large_index_is_kept_on_disk_and_made_again_when_it_is_damaged(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTRECIPES_CACHE", str(tmp_path))
    texts = (f"w{number} shared w{number * number % 997}" for number in range(KEPT_FROM))
    corpus = passages(*texts)
    query = ["w77 w311"]
    settings = ("bm25", 2, 1.2, 0.4)
    first = Table(corpus, "same", settings=settings).find(query[0], 5, True)
    [file] = (tmp_path / "indexes").iterdir()
    whole = file.read_bytes()
    assert Table(corpus, "same", settings=settings).find(query[0], 5, True) == first
    file.write_bytes(whole[:-9] + b"damaged :")
    assert Table(corpus, "same", settings=settings).find(query[0], 5, True) == first
    assert file.read_bytes() == whole


def test_words_are_cut_alike_in_formal_and_in_spoken_text():
    assert words("kara 's author is mine .") == ["kara", "'s", "author", "is", "mine"]
    spoken = words("Paris's Café, 1889; the cat’s")
    assert spoken == ["paris", "'s", "café", "1889", "the", "cat", "'s"]
    assert words("STRASSE Straße") == ["strasse", "strasse"]


def test_the_title_counts_as_often_as_the_boost_says():
    corpus = (Passage("0", "owl", "hunts the mouse"), Passage("1", "mouse", "fears the owl"))
    assert Bm25(title_boost=3).open(corpus).search(["owl"])[0][0].id == "0"
    flat = Bm25(title_boost=0).open(corpus).search(["owl"])
    assert [passage.id for passage in flat[0]] == ["1"]


def test_a_tie_at_the_cut_keeps_the_earlier_passage():
    corpus = passages("x y", "same", "same", "same", "x y z")
    for k in (1, 2, 3):
        [found] = Bm25().open(corpus).search(["same"], k)
        assert [passage.id for passage in found] == ["1", "2", "3"][:k]


def test_words_that_are_not_in_the_corpus_change_nothing():
    searcher = Bm25().open(passages("red fox", "grey owl"))
    assert searcher.search(["zzz owl qqq"]) == searcher.search(["owl"])


def test_changing_a_result_does_not_change_the_next_one():
    searcher = Bm25().open(passages("red fox", "red hen"))
    searcher.search(["red"])[0].clear()
    assert len(searcher.search(["red"])[0]) == 2


def test_an_own_corpus_comes_before_the_dataset_s(tmp_path):
    path = tmp_path / "own.jsonl"
    rows = [{"id": 1, "title": "T", "text": "red fox"}, {"id": "b", "text": "grey owl"}]
    path.write_text("\n\n".join(map(json.dumps, rows)), encoding="utf-8")
    searcher = Bm25(corpus=str(path)).open(passages("red red red"))
    assert searcher.search(["red"]) == [[Passage("1", "T", "red fox")]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "no JSON"),
        ("[]", "is no object"),
        ('{"text": "x"}', "no id"),
        ('{"id": "b", "title": 3, "text": "x"}', "must be text"),
        ('{"id": "a", "text": "x"}', "is that of .*:1 too"),
    ],
)
def test_a_broken_line_of_a_corpus_is_named(tmp_path, line, message):
    path = tmp_path / "own.jsonl"
    path.write_text('{"id": "a", "text": "x"}\n' + line, encoding="utf-8")
    with pytest.raises(RecipeError, match=message) as caught:
        Bm25(corpus=str(path)).open(())
    assert f"{path}:2" in str(caught.value)


def test_equal_corpora_share_one_index_and_others_do_not():
    one, same = passages("red fox", "grey owl"), passages("red fox", "grey owl")
    other = passages("red fox", "grey hen")
    assert Bm25().open(one)._table is Bm25(top_k=1).open(same)._table
    assert Bm25().open(one)._table is not Bm25().open(other)._table
    assert Bm25().open(one)._table is not Bm25(title_boost=0).open(one)._table


def test_every_fact_of_a_world_is_found_first_by_its_subject_and_relation():
    for split in ("train", "test"):
        corpus = World().corpus(split)
        queries = [" ".join(passage.text.split()[:3]) for passage in corpus]
        found = Bm25(top_k=1).open(corpus).search(queries)
        assert [passages[0].id for passages in found] == [passage.id for passage in corpus]


def test_the_shipped_questions_find_most_of_their_paragraphs():
    sample = Sample()
    searcher = Bm25().open(sample.corpus("dev"))
    hits = wanted = 0
    for task in sample.tasks("dev"):
        found = {passage.id for passage in searcher.search([task.question], 10)[0]}
        hits += len(found & set(task.data["supporting_ids"]))
        wanted += 2
    assert hits / wanted > 0.75


def test_the_default_retriever_brings_three_passages():
    assert build("retriever", "bm25") == Bm25(
        top_k=3, corpus=None, title_boost=2, k1=1.2, b=0.4, stop_words="english"
    )


def test_a_corpus_may_be_parquet_or_lines_of_contents(tmp_path):
    table = pyarrow.table({"id": ["1", "2"], "title": ["Zürich", None], "text": ["fox", "owl"]})
    pyarrow.parquet.write_table(table, tmp_path / "c.parquet")
    found = Bm25(corpus=str(tmp_path / "c.parquet")).open(()).search(["zürich", "owl"])
    assert found == [[Passage("1", "Zürich", "fox")], [Passage("2", "", "owl")]]
    lines = tmp_path / "c.jsonl"
    lines.write_text(
        '{"id": "1", "contents": "\\"Red fox\\"\\nhunts"}\n{"id": 2, "contents": "owl"}'
    )
    [hunts, owl] = Bm25(corpus=str(lines)).open(()).search(["hunts", "owl"])
    assert (hunts, owl) == ([Passage("1", "Red fox", "hunts")], [Passage("2", "", "owl")])


def test_a_file_that_is_no_corpus_is_named(tmp_path):
    (tmp_path / "c.parquet").write_bytes(b"no columns")
    with pytest.raises(RecipeError, match=r"c\.parquet: cannot be read"):
        Bm25(corpus=str(tmp_path / "c.parquet")).open(())
    (tmp_path / "e.jsonl").write_text("\n")
    with pytest.raises(RecipeError, match=r"e\.jsonl: no passages"):
        Bm25(corpus=str(tmp_path / "e.jsonl")).open(())
