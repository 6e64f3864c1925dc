"""A study in PostgreSQL, on a real server: it remembers, goes away, and comes back."""

from __future__ import annotations

import pytest
from tests.sweeps.postgres import Server, missing
from tests.sweeps.scripted import OBJECTIVE, RATE, SPACE, Workers, conducted, sweep_of

from agentrecipes.sweeps.pool import Said
from agentrecipes.sweeps.storage import StorageLost
from agentrecipes.sweeps.study import Study
from agentrecipes.tracking.mlflow.tracker import MlflowTracker
from agentrecipes.tracking.protocol import RunInfo

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "there is a server")
TEXT = OBJECTIVE + "sampler: random\ntrials: 4\n" + SPACE


@pytest.fixture(scope="module")
def server():
    made = Server()
    yield made
    made.close()


def by_rate(values, seed, iteration):
    return values[RATE] * iteration


def test_a_server_that_stops_ends_the_sweep_and_the_study_goes_on_when_it_is_back(
    server, tmp_path, monkeypatch
):
    monkeypatch.setattr("agentrecipes.sweeps.study.PAUSES", (0.01,))  # the clock's patience
    sweep = sweep_of(tmp_path, TEXT)

    class Losing(Workers):
        def hear(self, seconds) -> Said | None:
            if len(self.jobs) == 3 and self._said[0].message["do"] == "done":
                server.stop()
            return super().hear(seconds)

    first = Losing(by_rate)
    with pytest.raises(StorageLost, match=r"does not answer: .*refused"):
        conducted(sweep, tmp_path, first, url=server.url)
    with pytest.raises(StorageLost, match="does not answer: "):
        Study(sweep, server.url)
    server.start()
    study = Study(sweep, server.url)
    assert [trial.state.name for trial in study.trials()] == ["COMPLETE", "COMPLETE", "RUNNING"]
    owner = study.trials()[2].user_attrs["owner"]
    study.keep(study.again(2), owner={**owner, "pid": 2**22 + 1})
    lines: list[str] = []
    study = conducted(sweep, tmp_path, Workers(by_rate), say=lines.append, url=server.url)
    assert [trial.state.name for trial in study.trials()] == ["COMPLETE"] * 4
    assert "trial 2: was finished" in lines
    rates = [trial.params[RATE] for trial in study.trials()]
    assert [t.value for t in study.trials()] == pytest.approx([30 * rate for rate in rates])


def test_mlflow_keeps_runs_in_postgres_too(server, tmp_path):
    url = server.database("tracking")
    tracker = MlflowTracker(tmp_path, uri=url, patience_seconds=120.0)
    (tmp_path / "recipe.yaml").write_text("name: demo\n")
    tracker.start(
        RunInfo(
            run="one",
            experiment="demo",
            recipe={"name": "demo"},
            recipe_file=tmp_path / "recipe.yaml",
            recipe_hash="a" * 64,
            seed=7,
        )
    )
    tracker.metrics({"loss/total": 0.5}, 1)
    tracker.metrics({"loss/total": 0.25}, 2)
    tracker.finish("finished")
    assert tracker.lost == []
    import psycopg

    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        found = connection.execute("select key, step, value from metrics order by step").fetchall()
        runs = connection.execute("select name, status from runs").fetchall()
    assert found == [("loss/total", 1, 0.5), ("loss/total", 2, 0.25)]
    assert runs == [("one", "FINISHED")]
