"""The study in its storage: what it remembers, what it refuses, whom it asks."""

from __future__ import annotations

import json
from wsgiref.util import setup_testing_defaults

import pytest
from tests.sweeps.scripted import OBJECTIVE, RATE, SPACE, sweep_of

from agentrecipes.errors import MissingExtra, RecipeError
from agentrecipes.sweeps.storage import StorageLost
from agentrecipes.sweeps.study import Study, differences

TEXT = OBJECTIVE + "sampler: SAMPLER\ntrials: 9\n" + SPACE


def opened(folder, text=TEXT, sampler="random") -> Study:
    folder.mkdir(exist_ok=True)
    sweep = sweep_of(folder, text.replace("SAMPLER", sampler))
    return Study(sweep, f"sqlite:///{folder}/sweeps.db")


@pytest.mark.parametrize("sampler", ["random", "qmc", "{name: tpe, startup: 2}"])
def test_a_study_that_was_reopened_asks_what_it_would_have_asked(tmp_path, sampler):
    def asked(folder, sittings: list[int]) -> list[float]:
        rates = []
        for count in sittings:
            study = opened(folder, sampler=sampler)
            for _ in range(count):
                trial = study.ask()
                rates.append(study.values(trial)[RATE])
                study.tell(trial, [rates[-1]], OVER)
        return rates

    from optuna.trial import TrialState

    OVER = TrialState.COMPLETE
    whole, parts = asked(tmp_path / "a", [4]), asked(tmp_path / "b", [1, 3])
    assert whole == parts
    assert len(set(whole)) == 4
    assert all(1e-4 <= rate <= 1e-2 for rate in whole)


def test_a_study_whose_recipe_space_or_objective_changed_is_refused(tmp_path):
    opened(tmp_path)
    changes = {
        "iterations: 30": "stages.reinforce.iterations: was 30, and is 31",
        "1e-2]": f"space.{RATE}: was ",
        "metric: exact_match": "objective: was ",
    }
    path = tmp_path / "study.yaml"
    text = path.read_text()
    replaced = ["iterations: 31", "2e-2]", "metric: rounds_mean"]
    for (old, message), new in zip(changes.items(), replaced, strict=True):
        from agentrecipes.sweeps.load import load

        path.write_text(text.replace(old, new))
        with pytest.raises(RecipeError) as caught:
            Study(load(path), f"sqlite:///{tmp_path}/sweeps.db")
        problems = list(map(str, caught.value.problems))
        assert message in problems[0]
        assert "Give this one another name" in problems[-1]
    path.write_text(text.replace("trials: 9", "trials: 12"))  # more of the same is welcome
    assert Study(load(path), f"sqlite:///{tmp_path}/sweeps.db").trials() == []


def test_differences_name_what_is_only_there_or_only_here():
    old = {"recipe": {"a": "1", "b": "2"}, "space": {"x": {"float": [0, 1]}}, "objective": []}
    new = {"recipe": {"a": "1", "c": "3"}, "space": {}, "objective": []}
    assert list(differences(old, new)) == [
        ("b", "was 2, and is not there"),
        ("c", "was not there, and is 3"),
        ("space.x", "was {'float': [0, 1]}, and is not there"),
    ]


def test_an_address_that_is_none_is_told_without_its_password(tmp_path):
    sweep = sweep_of(tmp_path, TEXT.replace("SAMPLER", "random"))
    with pytest.raises(RecipeError, match="is no address of a database"):
        Study(sweep, "sweeps.db")
    with pytest.raises((MissingExtra, StorageLost)) as caught:
        Study(sweep, "postgresql://me:secret@127.0.0.1:1/none")
    assert "secret" not in str(caught.value)
    with pytest.raises(StorageLost, match="does not answer: "):
        Study(sweep, f"sqlite:///{tmp_path}/nowhere/sweeps.db")


def test_the_storage_opens_in_optuna_itself(tmp_path):
    import optuna

    study = opened(tmp_path)
    trial = study.ask()
    study.values(trial)
    url = f"sqlite:///{tmp_path}/sweeps.db"
    [summary] = optuna.get_all_study_summaries(url)
    assert (summary.study_name, summary.n_trials) == ("study", 1)


def test_optuna_s_own_pages_show_the_study(tmp_path):
    dashboard = pytest.importorskip("optuna_dashboard")
    study = opened(tmp_path)
    study.values(study.ask())
    application = dashboard.wsgi(f"sqlite:///{tmp_path}/sweeps.db")
    status: list[str] = []
    environ = {"PATH_INFO": "/api/studies"}
    setup_testing_defaults(environ)
    answer = application(environ, lambda said, headers, error=None: status.append(said))
    body = b"".join(answer)
    assert status == ["200 OK"]
    [summary] = json.loads(body)["study_summaries"]
    assert summary["study_name"] == "study"
