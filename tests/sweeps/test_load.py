"""A sweep file is checked like a recipe: every problem at once, each with its place."""

from __future__ import annotations

import pytest
from tests.sweeps.scripted import HEAD, OBJECTIVE, RATE, RECIPE, SPACE, sweep_of, written

from agentrecipes.cli.sweep import find_sweep
from agentrecipes.errors import RecipeError
from agentrecipes.sweeps.load import check, load

ALGORITHM = "stages.reinforce.algorithm"
START = f"{HEAD}{OBJECTIVE}trials: 2\n".count("\n")  # lines before what a test adds


def told(folder, text: str) -> list[tuple[str, int | None, str]]:
    """Path, line after `START`, and message with its advice, of each problem."""
    _, problems = check(written(folder, text))
    return [
        (problem.path, problem.line and problem.line - START, str(problem).split(": ", 1)[1])
        for problem in problems
    ]


def test_the_example_of_the_how_to_is_a_study(tmp_path):
    text = (
        "objective: {metric: exact_match, mode: sampled, split: dev, reduce: last, seeds: 2}\n"
        "sampler: tpe\npruner: {name: median, warmup: 2}\nstorage: sqlite:///sweeps.db\n"
        f"trials: 20\n{SPACE}"
        f"  {ALGORITHM}.name: {{choice: [ppo, grpo, rloo, dapo]}}\n"
        f"  {ALGORITHM}.clip_high: {{float: [0.1, 0.4], when: {{{ALGORITHM}.name: [ppo, dapo]}}}}\n"
    )
    sweep = sweep_of(tmp_path, text)
    assert (sweep.name, sweep.fields.seeds, sweep.fields.trials) == ("study", 2, 20)
    assert [entry.path.rpartition(".")[2] for entry in sweep.space.entries] == [
        "learning_rate",
        "name",
        "clip_high",
    ]
    assert sweep.recipe.stages[-1].iterations == 30  # what `set` says
    assert sweep.source.resolve() == RECIPE


def test_every_problem_is_told_at_once_with_its_place(tmp_path):
    text = OBJECTIVE.replace("exact_match", "exact_mach") + (
        "trials: 2\n"
        "sampler: {name: tpe, population: 4}\n"
        "pruner: {name: wilcoxon, warmup: 2}\n"
        "space:\n"
        "  stages.reinforce.optimizer.learning_rte: {float: [1e-4, 2e-3]}\n"
        f"  {RATE}: {{float: [0.0, 2e-3]}}\n"
        "  stages.reinfore.iterations: {int: [1, 2]}\n"
        f"  {ALGORITHM}.name: {{choice: [ppo, grop]}}\n"
    )
    found = told(tmp_path, text)
    assert [(path, line) for path, line, _ in found] == [
        ("objective.metric", -1),
        ("pruner", 2),
        ("sampler.population", 1),
        ("pruner.warmup", 2),
        ("space.stages.reinforce.optimizer.learning_rte", 4),
        (f"space.{RATE}.float[0]", 5),
        ("space.stages.reinfore.iterations", 6),
        (f"space.{ALGORITHM}.name.choice[1]", 7),
    ]
    messages = [message for _, _, message in found]
    assert messages[0].endswith("no metric 'exact_mach'. Did you mean 'exact_match'?")
    assert messages[4].endswith("called 'learning_rte'. Did you mean 'learning_rate'?")
    assert "expected a number above 0, but got 0.0" in messages[5]
    assert messages[6].endswith("no stage is called 'reinfore'. Did you mean 'reinforce'?")
    assert "no algorithm is called 'grop'" in messages[7]


WRONG = {  # what stands in the file, and what is said about it
    "pruner: median\nobjective: [{metric: exact_match}, {metric: rounds_mean}]\n": (
        "a study with several objectives cannot end trials early. Write `pruner: none`"
    ),
    "objective: {metric: exact_match, mode: greedi}\n": "expected one of 'sampled', 'greedy'",
    "objective: {metric: exact_match, stage: imitat}\n": "is called 'imitat'. Did you mean",
    "objective: {metric: exact_match, split: train}\n": "is not evaluated on 'train'. Known: dev, ",
    "objective: {metric: exact_match, stage: imitate, split: test}\n": "not evaluated on 'test'",
    "objective: {metric: exact_match}\npruner: hyperband\nset: {evaluation.every: 0}\n": (
        "has no evaluations on the way for a pruner to read"
    ),
    "objective: {metric: exact_match}\npruner: medium\n": "expected one of 'median', 'hyperband'",
    "objective: {metric: exact_match}\nset: {rollout.tsks: 3}\n": "called 'tsks'. Did you mean",
    f"objective: {{metric: exact_match}}\nset: {{{RATE}: 3}}\n": "the space asks for this path",
    "objective: {metric: exact_match}\nset: {trainer.devices: 2}\n": "a trial has one process",
    "objective: {metric: exact_match}\nprofile: small\n": "no profile is called 'small'",
    "objective: {metric: exact_match}\nstorage: sqlite:///a.db\n"
    "set: {tracking.uri: 'sqlite:///a.db'}\n": "Give the study a database of its own",
    "objective: {metric: exact_match}\nworkers: 2\n": "no field is called 'workers'",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_problem_says_what_to_write_instead(tmp_path, text):
    path = tmp_path / "study.yaml"
    path.write_text(f"recipe: {RECIPE}\n{text}trials: 2\n{SPACE}")
    sweep, problems = check(path)
    assert sweep is None
    assert any(WRONG[text] in str(problem) for problem in problems), list(map(str, problems))
    assert all(problem.file for problem in problems)


SPACES = {
    "{float: [1, 0.1]}": "the range ends at 0.1 and begins at 1",
    "{float: [0.0, 1], log: true}": "a logarithmic range begins at 0",
    "{float: [0.1, 1], log: true, step: 0.1}": "step has no effect on a logarithmic range",
    "{float: [0.1, 1], int: [1, 2]}": "several stand here",
    "{}": "no distribution stands here. Write one of `float: [low, high]`",
    "{choice: [0.1, 0.1]}": "a choice stands here twice",
    "{choice: [0.1, 0.2], log: true}": "log has no effect on a choice",
    "{float: [0.1, 1], when: {rollout.tasks: 4}}": "'rollout.tasks' is no choice of this space",
    "{flot: [0.1, 1]}": "no field is called 'flot'. Did you mean 'float'?",
}


@pytest.mark.parametrize("entry", SPACES)
def test_a_distribution_that_says_nothing_is_refused(tmp_path, entry):
    found = told(tmp_path, f"{OBJECTIVE}trials: 2\nspace:\n  {RATE}: {entry}\n")
    assert any(SPACES[entry] in message for _, _, message in found), found
    assert all(path.startswith("space.") and line == 2 for path, line, _ in found)


def test_conditions_name_choices_of_the_space_and_lead_nowhere_in_a_circle(tmp_path):
    head = OBJECTIVE + "trials: 2\nspace:\n"
    unknown = told(
        tmp_path,
        f"{head}  {ALGORITHM}.name: {{choice: [ppo, dapo]}}\n"
        f"  {ALGORITHM}.clip_high: {{float: [0.1, 0.4], when: {{{ALGORITHM}.name: grpo}}}}\n",
    )
    assert [line for _, line, _ in unknown] == [3]
    assert "'grpo' is no choice of" in unknown[0][2]
    circle = told(
        tmp_path,
        f"{head}  rollout.tasks: {{choice: [2, 4], when: {{rollout.group_size: 2}}}}\n"
        "  rollout.group_size: {choice: [2, 4], when: {rollout.tasks: 2}}\n",
    )
    assert "its conditions lead in a circle" in circle[0][2]


def test_the_ends_are_checked_where_their_conditions_hold(tmp_path):
    text = OBJECTIVE + (
        f"trials: 2\nspace:\n  {ALGORITHM}.name: {{choice: [ppo, sapo]}}\n"
        f"  {ALGORITHM}.tau_positive: {{float: [0.5, 1.5], when: {{{ALGORITHM}.name: WHEN}}}}\n"
    )
    assert told(tmp_path, text.replace("WHEN", "sapo")) == []
    found = told(tmp_path, text.replace("WHEN", "ppo"))
    assert len(found) == 1
    assert "no field is called 'tau_positive' (where " in found[0][2]


def test_a_pair_of_values_that_the_recipe_refuses_is_a_warning(tmp_path):
    text = OBJECTIVE + (
        f"trials: 2\nspace:\n  {ALGORITHM}.name: {{choice: [ppo, rloo]}}\n"
        "  rollout.group_size: {int: [1, 4]}\n"
    )
    sweep, problems = check(written(tmp_path, text))
    assert sweep is not None
    assert [problem.severity for problem in problems] == ["warning"]
    assert "rloo" in str(problems[0])


def test_a_choice_may_be_a_mapping_that_is_merged_over_the_recipe(tmp_path):
    text = OBJECTIVE + (
        "sampler: grid\nspace:\n  rollout:\n"
        "    choice: [{tasks: 64, group_size: 2}, {tasks: 16, group_size: 8}]\n"
    )
    sweep = sweep_of(tmp_path, text)
    sizes = []
    for point in sweep.space.grid():
        recipe, problems = sweep.recipe_of(point, 3)
        assert problems == []
        rollout = recipe.stages[-1].rollout
        sizes.append((rollout.tasks, rollout.group_size, rollout.tokens, recipe.seed))
    assert sizes == [(64, 2, 256, 3), (16, 8, 256, 3)]


def test_a_shipped_sweep_is_found_by_its_name_and_finds_its_recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_sweep("groups.yaml").read_text().startswith("# Many tasks or many attempts?")
    sweep, problems = check(find_sweep("rag_r1"))
    assert (sweep.name, sweep.recipe.name, problems) == ("rag_r1", "rag_r1", [])
    (tmp_path / "sweeps").mkdir()
    own = tmp_path / "sweeps" / "rag_r1.yaml"
    own.write_text("recipe: rag_r1\n" + OBJECTIVE + "trials: 3\n" + SPACE)
    assert find_sweep("rag_r1").samefile(own)  # one of your own comes first
    with pytest.raises(RecipeError, match="Known sweeps: groups, rag_r1"):
        find_sweep("rag_r2")


def test_a_recipe_that_is_not_there_is_named(tmp_path):
    path = tmp_path / "study.yaml"
    path.write_text("recipe: nothing.yaml\n" + OBJECTIVE + "trials: 1\n" + SPACE)
    _, [problem] = check(path)
    assert str(problem).startswith(f"{path}:1:9 recipe: there is no recipe 'nothing.yaml'")


def test_an_override_of_what_the_space_asks_is_refused(tmp_path):
    path = written(tmp_path, OBJECTIVE + "trials: 2\n" + SPACE)
    sweep, problems = check(path, [f"{RATE}=1e-3"])
    assert sweep is None
    assert "the command line sets what the space asks for" in str(problems[0])
    sweep, problems = check(path, ["rollout.tasks=8"])
    assert problems == []
    assert sweep.recipe.stages[0].rollout.tasks == 8
    with pytest.raises(RecipeError, match=r"rollout\.tsks"):
        load(path, ["rollout.tsks=8"])
