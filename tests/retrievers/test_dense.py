"""Search by meaning, alone and together with words; what is fused, kept, and missing."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from tests.tolerances import FLOAT64

from agentrecipes.cli.main import main
from agentrecipes.components import build
from agentrecipes.records import Passage
from agentrecipes.retrievers import encoders
from agentrecipes.retrievers.dense import Dense
from agentrecipes.retrievers.hybrid import Hybrid, ranked, summed
from agentrecipes.testing.suites import RetrieverSuite

INSTALLED = importlib.util.find_spec("wordllama") is not None
needs_vectors = pytest.mark.skipif(not INSTALLED, reason="needs wordllama, of the extra dense")

CATS = (
    Passage("a", "", "The physician treated the sick child."),
    Passage("b", "", "Stock markets fell on Friday."),
    Passage("c", "", "A cat sleeps on the sofa."),
)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTRECIPES_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "indexes"


@needs_vectors
class TestDense(RetrieverSuite):
    @pytest.fixture
    def retriever(self):
        return Dense()


@needs_vectors
class TestHybrid(RetrieverSuite):
    @pytest.fixture
    def retriever(self):
        return Hybrid()


@needs_vectors
class TestByRank(RetrieverSuite):
    @pytest.fixture
    def retriever(self):
        return Hybrid(fusion="reciprocal_rank")


@needs_vectors
def test_a_paraphrase_is_found_without_a_word_in_common():
    assert Dense(top_k=1).open(CATS).search(["doctor helps ill kid"])[0][0].id == "a"
    assert Hybrid(top_k=1).open(CATS).search(["doctor helps ill kid"])[0][0].id == "a"


@needs_vectors
def test_vectors_are_kept_shared_and_made_again_when_they_are_damaged(cache):
    corpus = (*CATS, Passage("d", "", "made for this test"))
    first = Dense().open(corpus)
    [file] = cache.iterdir()
    assert Dense(top_k=1).open(tuple(corpus))._vectors is first._vectors
    whole = file.read_bytes()
    file.write_bytes(whole[:100])
    other = Dense(query_prefix="query: ").open(corpus)
    assert other._vectors is not first._vectors
    assert file.read_bytes() == whole
    Dense(passage_prefix="passage: ").open(corpus)
    assert len(list(cache.iterdir())) == 2


def test_a_weighted_sum_takes_each_score_from_its_least_to_its_best():
    # words 4 2 0, cosines -.5 .3 .6, weight .25: .75 · (1, .5, 0) + .25 · (.5, 1.3, 1.6) / 1.6
    found = summed(np.array([4.0, 2.0, 0.0]), np.array([-0.5, 0.3, 0.6]), 0.25)
    np.testing.assert_allclose(found, [0.828125, 0.578125, 0.25], **FLOAT64)
    np.testing.assert_array_equal(summed(np.zeros(2), np.full(2, -1.0), 0.25), [0.0, 0.0])


def test_reciprocal_ranks_are_weighted_and_a_passage_that_neither_found_has_none():
    # by words: second, first, not found; by meaning: third, second, first; weight .2
    found = ranked(np.array([2.0, 5.0, 0.0]), np.array([0.1, 0.2, 0.9]), 0.2)
    expected = [0.8 / 62 + 0.2 / 63, 0.8 / 61 + 0.2 / 62, 0.2 / 61]
    np.testing.assert_allclose(found, expected, **FLOAT64)
    np.testing.assert_array_equal(ranked(np.zeros(2), np.full(2, -1.0), 0.2), [0.0, 0.0])


def test_a_hybrid_holds_one_of_each_kind_over_one_corpus():
    with pytest.raises(ValueError, match="sparse must be bm25"):
        build("retriever", {"name": "hybrid", "sparse": "dense"})
    with pytest.raises(ValueError, match="search one corpus"):
        build("retriever", {"name": "hybrid", "sparse": {"name": "bm25", "corpus": "c.jsonl"}})


RECIPE = """\
name: small
model: tiny
environment: {name: search, dataset: sample, retriever: RETRIEVER}
rewards: [exact_match]
algorithm: grpo
iterations: 1
"""


@pytest.mark.parametrize("retriever", ["dense", "hybrid"])
def test_a_missing_extra_is_one_line_with_the_command(tmp_path, monkeypatch, capsys, retriever):
    monkeypatch.setattr(encoders, "find_spec", lambda name: None)  # as if it were not there
    (tmp_path / "r.yaml").write_text(RECIPE.replace("RETRIEVER", retriever))
    with pytest.raises(SystemExit) as end:
        main(["check", str(tmp_path / "r.yaml")])
    assert end.value.code == 3
    said = "".join(capsys.readouterr())
    assert "wordllama is not installed. Install it: pip install 'agentrecipes[dense]'." in said


def test_a_model_of_another_name_is_one_for_sentence_transformers(tmp_path):
    expected = (
        None if importlib.util.find_spec("sentence_transformers") else "sentence-transformers"
    )
    assert encoders.missing("intfloat/e5-base-v2") == expected
    (tmp_path / "weights").write_bytes(b"1")
    one = encoders.identity(str(tmp_path))
    encoders.identity.cache_clear()
    (tmp_path / "weights").write_bytes(b"2")
    assert encoders.identity(str(tmp_path)) != one
    assert encoders.identity("intfloat/e5-base-v2") == "intfloat/e5-base-v2"
