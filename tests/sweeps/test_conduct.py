"""How trials are handed out, judged, retried and ended, with workers that follow a formula."""

from __future__ import annotations

import math

import pytest
from optuna.trial import TrialState
from tests.sweeps.scripted import OBJECTIVE, RATE, SPACE, Workers, conducted, seed_of, sweep_of

from agentrecipes.errors import RunStopped
from agentrecipes.sweeps.outcome import outcome
from agentrecipes.sweeps.pool import Said
from agentrecipes.sweeps.storage import StorageLost
from agentrecipes.sweeps.study import Study

CLOSE = {"rel": 0.0, "abs": 1e-12}


def by_rate(values, seed, iteration):
    """Best at a rate of 1e-3; grows with the iterations, and a little with the seed."""
    distance = abs(math.log10(values[RATE]) + 3)
    return (1 - 0.3 * distance) * iteration / 30 + 0.01 * seed


def states(study: Study) -> list[str]:
    return [trial.state.name for trial in study.trials()]


def test_a_trial_is_worth_the_mean_of_the_last_evaluations_of_its_seeds(tmp_path):
    text = "objective: {metric: exact_match, seeds: 3}\ntrials: 2\n" + SPACE
    workers = Workers(by_rate)
    study = conducted(sweep_of(tmp_path, text), tmp_path, workers)
    assert states(study) == ["COMPLETE", "COMPLETE"]
    assert [seed_of(job) for job in workers.jobs] == [7, 8, 9, 7, 8, 9]  # the recipe's is 7
    for trial in study.trials():
        rate = trial.params[RATE]
        # seeds 7, 8 and 9 add .07, .08 and .09: .08 in the mean
        expected = 1 - 0.3 * abs(math.log10(rate) + 3) + 0.08
        assert trial.value == pytest.approx(expected, **CLOSE)


def test_the_curve_goes_on_through_the_seeds(tmp_path):
    text = "objective: {metric: exact_match, seeds: 2}\ntrials: 1\n" + SPACE

    def linear(values, seed, iteration) -> float:
        return iteration / 100 + (0.2 if seed == 8 else 0.0)

    study = conducted(sweep_of(tmp_path, text), tmp_path, Workers(linear))
    # The first seed: 0, .1, .2, .3, worth .3. The second: .2, .3, .4, .5, each in the mean with .3.
    expected = {0: 0.0, 1: 0.1, 2: 0.2, 3: 0.3, 4: 0.25, 5: 0.3, 6: 0.35, 7: 0.4}
    [trial] = study.trials()
    assert trial.intermediate_values == pytest.approx(expected, **CLOSE)
    assert trial.value == pytest.approx(0.4, **CLOSE)


@pytest.mark.parametrize(("reduce", "value"), [("last", 0.3), ("best", 0.6), ("mean", 0.3)])
def test_the_evaluations_on_the_way_are_reduced_as_the_file_says(tmp_path, reduce, value):
    points = {0: 0.1, 10: 0.2, 20: 0.6, 30: 0.3}
    text = f"objective: {{metric: exact_match, reduce: {reduce}}}\ntrials: 1\n" + SPACE
    workers = Workers(lambda values, seed, iteration: points[iteration])
    study = conducted(sweep_of(tmp_path, text), tmp_path, workers)
    assert study.trials()[0].value == pytest.approx(value, **CLOSE)


def test_a_trial_below_the_median_ends_early_and_the_best_is_not_lost(tmp_path):
    pruner = "pruner: {name: median, startup: 3, warmup: 1}\n"
    text = OBJECTIVE + pruner + "sampler: random\ntrials: 12\n" + SPACE
    pruned, whole = Workers(by_rate), Workers(by_rate)
    study = conducted(sweep_of(tmp_path, text), tmp_path, pruned)
    (tmp_path / "all").mkdir()
    every = sweep_of(tmp_path / "all", text.replace(pruner, ""))
    complete = conducted(every, tmp_path / "all", whole)
    ended = [t for t in study.trials() if t.state == TrialState.PRUNED]
    assert len(ended) >= 3
    assert {len(trial.intermediate_values) for trial in ended} <= {2, 3, 4}
    assert whole.rows == 12 * 4
    assert pruned.rows < 0.85 * whole.rows
    best = max(t.value for t in study.trials() if t.value is not None and t not in ended)
    assert best == max(trial.value for trial in complete.trials())
    told = outcome(every, complete.trials())
    assert (told["trials"], told["finished"], told["best"]["value"]) == (12, 12, best)


def test_hyperband_lets_the_better_ones_of_each_bracket_go_on(tmp_path):
    pruner = "pruner: {name: hyperband, reduction: 2}\n"
    text = OBJECTIVE + pruner + "sampler: random\ntrials: 10\n" + SPACE
    workers = Workers(by_rate)
    study = conducted(sweep_of(tmp_path, text), tmp_path, workers)
    values = {t.number: by_rate({RATE: t.params[RATE]}, 7, 30) for t in study.trials()}
    ended = [t for t in study.trials() if t.state == TrialState.PRUNED]
    assert 2 <= len(ended) <= 8
    assert workers.rows == sum(len(t.intermediate_values) for t in study.trials())
    assert {len(t.intermediate_values) for t in ended} <= {1, 2, 3}  # of four points
    best = max(values, key=lambda number: values[number])
    assert study.trials()[best].state == TrialState.COMPLETE
    assert study.trials()[best].value == pytest.approx(values[best], **CLOSE)


def test_wilcoxon_ends_a_trial_between_its_seeds(tmp_path):
    text = (
        "objective: {metric: exact_match, seeds: 6}\npruner: wilcoxon\nsampler: random\n"
        f"trials: 4\n{SPACE}"
    )
    workers = Workers(by_rate)
    study = conducted(sweep_of(tmp_path, text), tmp_path, workers)
    assert states(study)[0] == "COMPLETE"
    [first, *rest] = study.trials()
    assert sorted(first.intermediate_values) == list(range(6))
    worse = [t for t in rest if t.state == TrialState.PRUNED]
    assert worse
    # Every pair points the same way, so the one-sided p after n seeds is 1 / 2^n: below .1 at 4.
    assert {len(trial.intermediate_values) for trial in worse} == {4}


def test_two_objectives_give_a_front(tmp_path):
    text = (
        "objective:\n  - {metric: exact_match}\n  - {metric: rounds_mean, direction: minimize}\n"
        f"sampler: {{name: nsga2, population: 4}}\ntrials: 6\n{SPACE}"
    )
    sweep = sweep_of(tmp_path, text)
    study = conducted(sweep, tmp_path, Workers(by_rate))
    told = outcome(sweep, study.trials())
    assert all(row["values"][1] == 2.0 for row in told["table"])
    # With the second objective equal everywhere only the best of the first is on the front.
    assert [row["number"] for row in told["front"]] == [told["best"]["number"]]
    assert told["best"]["value"] == max(row["values"][0] for row in told["table"])


def test_a_killed_process_is_tried_again_and_then_given_up(tmp_path):
    text = OBJECTIVE + "sampler: random\nretries: 1\ntrials: 3\n" + SPACE
    lines: list[str] = []
    workers = Workers(by_rate, kills={1: 1, 2: 2})
    sweep = sweep_of(tmp_path, text)
    study = conducted(sweep, tmp_path, workers, say=lines.append)
    assert states(study) == ["COMPLETE", "COMPLETE", "FAIL"]
    told = outcome(sweep, study.trials())
    assert [row["tries"] for row in told["table"]] == [0, 1, 2]
    assert told["table"][2]["reason"] == "its process was killed by signal 9, 2 times"
    assert sum("trying again" in line for line in lines) == 2
    folders = [job["folder"] for job in workers.jobs]
    assert folders[1] == folders[2]  # the run goes on where it was


def test_a_trial_that_fails_is_told_and_the_rest_go_on(tmp_path):
    text = OBJECTIVE + "sampler: random\ntrials: 4\n" + SPACE
    sweep = sweep_of(tmp_path, text)
    study = conducted(sweep, tmp_path, Workers(by_rate, fails=frozenset({1})))
    told = outcome(sweep, study.trials())
    assert [row["state"] for row in told["table"]] == ["finished", "failed", "finished", "finished"]
    assert (told["table"][1]["reason"], told["trials"], told["failed"]) == ("it broke", 4, 1)


def test_a_sweep_in_which_nothing_works_ends_with_the_reason(tmp_path):
    text = OBJECTIVE + "trials: 20\n" + SPACE
    workers = Workers(by_rate, fails=frozenset(range(20)))
    with pytest.raises(RunStopped, match=r"the first 3 trials failed\. The last: it broke"):
        conducted(sweep_of(tmp_path, text), tmp_path, workers)
    assert len(workers.jobs) == 3


def test_a_combination_that_the_recipe_refuses_takes_no_training(tmp_path):
    text = OBJECTIVE + (
        "sampler: grid\nspace:\n  rollout.group_size: {int: [2, 4]}\n"
        "  rollout.tasks: {choice: [1, 3]}\n"
        "  stages.reinforce.trainer.minibatches: {choice: [1, 6]}\n"
    )
    sweep = sweep_of(tmp_path, text)
    workers = Workers(lambda values, seed, iteration: values["rollout.tasks"] / 10)
    study = conducted(sweep, tmp_path, workers)
    told = outcome(sweep, study.trials())
    failed = [row for row in told["table"] if row["state"] == "failed"]
    refused = [r["params"]["rollout.group_size"] * r["params"]["rollout.tasks"] for r in failed]
    # 6 minibatches need 6 trajectories: 2, 3 and 4 of one task are too few, 3 tasks have enough.
    assert sorted(refused) == [2, 3, 4]
    assert all("minibatches" in row["reason"] for row in failed)
    assert len(workers.jobs) == 12 - 3


def test_every_point_of_a_grid_is_run_once(tmp_path):
    name = "stages.reinforce.algorithm.name"
    text = OBJECTIVE + (
        f"sampler: grid\nspace:\n  {name}: {{choice: [ppo, reinforce, dapo]}}\n"
        "  stages.reinforce.algorithm.clip_high: "
        f"{{float: [0.1, 0.3], step: 0.1, when: {{{name}: [ppo, dapo]}}}}\n"
    )
    workers = Workers(lambda values, seed, iteration: 0.5, count=2)
    study = conducted(sweep_of(tmp_path, text), tmp_path, workers)
    params = [tuple(sorted(t.params.items(), key=str)) for t in study.trials()]
    assert len(params) == len(set(params)) == 1 + 2 * 3
    assert sum(len(each) == 1 for each in params) == 1  # reinforce clips nothing


def test_the_trials_of_a_dead_sweep_are_finished_under_their_numbers(tmp_path):
    text = "objective: {metric: exact_match, seeds: 2}\nsampler: random\ntrials: 3\n" + SPACE
    sweep = sweep_of(tmp_path, text)

    class Dying(Workers):
        def hear(self, seconds) -> Said | None:
            if len(self.jobs) == 4:  # in the second seed of the second trial
                raise KeyboardInterrupt
            return super().hear(seconds)

    first = Dying(by_rate)
    with pytest.raises(KeyboardInterrupt):
        conducted(sweep, tmp_path, first)
    study = Study(sweep, f"sqlite:///{tmp_path}/sweeps.db")
    assert states(study) == ["COMPLETE", "RUNNING"]
    begun = dict(study.trials()[1].params)
    study.keep(study.again(1), owner={"host": owner_host(study), "pid": 2**22 + 1, "born": "1"})
    second = Workers(by_rate)
    study = conducted(sweep, tmp_path, second)
    assert states(study) == ["COMPLETE"] * 3
    assert study.trials()[1].params == begun
    folders = [job["folder"] for job in (*first.jobs, *second.jobs)]
    assert len(set(folders)) == 6  # three trials of two seeds
    assert len(second.jobs) == 3  # the interrupted one, and both of the last trial


def owner_host(study: Study) -> str:
    return study.trials()[1].user_attrs["owner"]["host"]


def test_a_trial_of_a_living_sweep_is_left_alone(tmp_path):
    sweep = sweep_of(tmp_path, OBJECTIVE + "sampler: random\ntrials: 2\n" + SPACE)
    url = f"sqlite:///{tmp_path}/sweeps.db"
    study = Study(sweep, url)
    conducted(sweep, tmp_path, Workers(by_rate))
    other = Study(sweep_of(tmp_path, OBJECTIVE + "sampler: random\ntrials: 9\n" + SPACE), url)
    trial = other.ask()
    owner = study.trials()[0].user_attrs["owner"]  # this very process
    other.keep(trial, owner=owner)
    workers = Workers(by_rate)
    four = sweep_of(tmp_path, OBJECTIVE + "sampler: random\ntrials: 4\n" + SPACE)
    conducted(four, tmp_path, workers)
    assert states(study) == ["COMPLETE", "COMPLETE", "RUNNING", "COMPLETE"]


def test_a_storage_that_is_lost_ends_the_sweep_and_the_next_one_counts_what_was_run(tmp_path):
    sweep = sweep_of(tmp_path, OBJECTIVE + "sampler: random\ntrials: 3\n" + SPACE)

    class Losing(Workers):
        def hear(self, seconds) -> Said | None:
            if len(self.jobs) == 2 and self._said[0].message["do"] != "evaluation":
                (tmp_path / "sweeps.db").rename(tmp_path / "kept.db")
            return super().hear(seconds)

    with pytest.raises(StorageLost, match="was removed or replaced during the sweep"):
        conducted(sweep, tmp_path, Losing(by_rate))
    (tmp_path / "kept.db").rename(tmp_path / "sweeps.db")
    study = Study(sweep, f"sqlite:///{tmp_path}/sweeps.db")
    study.keep(study.again(1), owner={"host": owner_host(study), "pid": 2**22 + 1, "born": "1"})
    lines: list[str] = []
    study = conducted(sweep, tmp_path, Workers(by_rate), say=lines.append)
    assert states(study) == ["COMPLETE"] * 3
    assert "trial 1: was finished" in lines
