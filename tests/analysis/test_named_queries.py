from __future__ import annotations

import pytest
from tests.cli.snapshot import check_snapshot
from tests.tracking.made import store

from agentrecipes.analysis.formats import as_csv
from agentrecipes.analysis.query import NAMED, list_queries, query
from agentrecipes.errors import RecipeError

NAMES = sorted(path.stem for path in NAMED.glob("*.sql"))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return store(tmp_path_factory.mktemp("runs"))


@pytest.mark.parametrize("name", NAMES)
def test_a_named_query_answers_as_its_snapshot_on_a_small_store(made, name):
    text = f"{list_queries()[name]}\n{as_csv(query(name, made))}"
    check_snapshot(f"named_{name}", text)


@pytest.mark.parametrize("name", NAMES)
def test_a_named_query_is_empty_where_nothing_has_run(tmp_path, name):
    assert query(name, tmp_path).rows == ()


def test_every_named_query_begins_with_what_it_shows():
    assert len(NAMES) >= 8
    for path in NAMED.glob("*.sql"):
        assert path.read_text().startswith("-- ")
        assert list_queries()[path.stem].endswith(".")


def test_the_curve_is_the_mean_over_seeds_with_its_interval(made):
    # Iteration 0: values .25 and .75, mean .5, sample deviation sqrt(.125) = .35355, over sqrt(2)
    # that is .25; 1.96 times it is .49.
    curve = query("curve", made)
    rows = [dict(zip(curve.columns, row, strict=True)) for row in curve.rows]
    row = next(row for row in rows if row["stage"] == "reinforce")
    assert (row["iteration"], row["mean"], row["seeds"]) == (0, 0.5, 2)
    assert (row["low"], row["high"]) == (pytest.approx(0.01), pytest.approx(0.99))


def test_an_unknown_name_gets_a_suggestion(made):
    with pytest.raises(RecipeError, match="Did you mean 'curve'") as refused:
        query("curves", made)
    assert refused.value.exit_code == 2
