from __future__ import annotations

from tests.recipe.conftest import ONE, TOY, TWO

from agentrecipes.recipe.load import check, load


def only(path, overrides=()):
    """The one problem of a recipe."""
    _, problems = check(path, overrides)
    assert len(problems) == 1, [str(problem) for problem in problems]
    return problems[0]


def test_a_reward_that_reads_a_field_the_dataset_lacks_is_told(write):
    problem = only(write(ONE.replace("[toy_hit]", "[toy_hit, toy_hops]")))
    assert (problem.code, problem.path, problem.line) == ("missing_field", "rewards[1]", 4)
    assert "'golden_answer'" in problem.message
    assert problem.suggestion == "Did you mean 'golden_answers'?"


def test_a_reward_inside_a_reward_is_asked_too(write):
    problem = only(
        write(ONE.replace("toy_hit", "{name: toy_all, of: [toy_hit, {name: toy_hops}]}"))
    )
    assert (problem.code, problem.path) == ("missing_field", "rewards[0].of[1]")


def test_data_that_cannot_be_read_is_a_problem_of_the_recipe(write):
    problem = only(write(ONE.replace("toy_room", "{name: toy_room, dataset: toy_torn}")))
    assert (problem.code, problem.path) == ("bad_data", "environment.dataset")
    assert "line 3 is no JSON" in problem.message


def test_a_part_adds_rules_of_its_own_at_its_own_place(write):
    rewards = "[{name: toy_all, of: [{name: toy_cost, free: 99}]}]"
    path = write(ONE.replace("[toy_hit]", rewards))
    problem = only(path)
    assert (problem.code, problem.path) == ("too_free", "rewards[0].of[0].free")
    column = path.read_text(encoding="utf-8").splitlines()[3].index("99") + 1
    assert (problem.line, problem.column) == (4, column)


def test_a_rule_broken_at_the_top_level_is_told_once_for_all_stages(write):
    text = TWO.replace("tasks: 4", "tasks: 4, tokens_per_turn: 9, tokens: 9")
    problem = only(write(text))
    assert (problem.code, problem.path) == ("contradiction", "rollout.tokens_per_turn")


def test_inherited_fields_without_effect_are_no_problem(write):
    text = TWO + "tripwires: {no_signal: {below: 0.1}, dead_type: {below: 0.5}}\n"
    copy, attempt = load(write(text)).stages
    assert (copy.tripwires.no_signal, attempt.tripwires.dead_type) == (None, None)
    assert (copy.tripwires.dead_type.below, attempt.tripwires.no_signal.below) == (0.5, 0.1)


def test_an_algorithm_that_compares_attempts_needs_two(write):
    problem = only(write(TOY + "algorithm: toy_bring\niterations: 1\n"), ["rollout.group_size=1"])
    assert (problem.code, problem.path) == ("group_size", "rollout.group_size")


def test_devices_of_a_stage_that_reads_data_may_be_any_number(write):
    recipe = load(write(TWO), ["stages.copy.trainer.devices=3"])
    assert recipe.stages[0].trainer.devices == 3


def test_another_label_tells_two_rewards_of_one_name_apart(write):
    rewards = "[toy_hit, {name: toy_hit, strict: false, as: loose}]"
    [stage] = load(write(ONE.replace("[toy_hit]", rewards))).stages
    assert [entry.label for entry in stage.rewards] == ["toy_hit", "loose"]
