from __future__ import annotations

import pytest
from tests.recipe.conftest import ONE, TWO

from agentrecipes.recipe.load import check, load

FALLING = "{schedule: linear, from: 1.0, to: 0.5, over: 10}"
STEPS = "{schedule: steps, values: [2, 4, 6], every: 5}"


def test_a_stage_has_the_values_of_its_iteration(write):
    recipe = load(
        write(ONE + f"rollout: {{temperature: {FALLING}}}\n"), [f"environment.max_turns={STEPS}"]
    )
    found = [
        (recipe.stage(0, i).rollout.temperature, recipe.stage(0, i).environment.max_turns)
        for i in (0, 5, 20)
    ]
    # 1.0 - 0.5 * 5 / 10 = 0.75; after ten iterations the end; steps of five iterations
    assert found == [(1.0, 2), (0.75, 4), (0.5, 6)]
    assert recipe.stages[0].rollout.temperature == 1.0


def test_a_stage_without_schedules_is_built_once(write):
    text = TWO.replace("rate: 0.25", f"rate: {FALLING}")
    recipe = load(write(text))
    assert recipe.stage(0, 7) is recipe.stage(0)
    assert recipe.stage(1, 7) is not recipe.stage(1)
    assert recipe.stage(1, 10).algorithm.rate == 0.5


def test_the_resolved_recipe_keeps_the_schedule_and_names_its_place(write):
    path = write(ONE + f"rollout:\n  temperature: {FALLING}\n")
    recipe = load(path)
    schedule = {"schedule": "linear", "from": 1.0, "to": 0.5, "over": 10}
    assert recipe.data["stages"][0]["rollout"]["temperature"] == schedule
    assert recipe.origin["stages.toy_try.rollout.temperature"] == f"{path}:8"


def test_the_weight_of_a_reward_may_be_a_schedule(write):
    recipe = load(write(ONE.replace("[toy_hit]", f"[{{name: toy_hit, weight: {FALLING}}}]")))
    assert [recipe.stage(0, i).rewards[0].weight for i in (0, 4)] == [1.0, 0.8]


@pytest.mark.parametrize(
    "schedule",
    [
        "{schedule: steps, values: [3, 4, 0], every: 5}",  # the last value
        "{schedule: linear, from: 3, to: 0, over: 5}",  # the end
        "{schedule: cosine, from: 3.0, to: 4.0, over: 5}",  # fractions on the way
        "{schedule: constant, value: 0}",
    ],
)
def test_every_value_of_a_schedule_must_be_allowed(write, schedule):
    text = ONE.replace("toy_room", f"{{name: toy_room, max_turns: {schedule}}}")
    recipe, [problem] = check(write(text))
    assert recipe is None
    assert (problem.path, problem.line) == ("environment.max_turns", 3)
    assert problem.message.startswith("expected a whole number of at least 1, but got")


@pytest.mark.parametrize(
    "override",
    [
        "name",
        "seed",
        "iterations",
        "model.width",
        "trainer.minibatches",
        "evaluation.tasks",
        "tracking.traces",
        "rollout.group_size",
        "rollout.concurrency",
        "algorithm.name",
    ],
)
def test_a_schedule_may_not_stand_where_things_are_built_once(write, override):
    _, [problem] = check(write(ONE), [f"{override}={STEPS}"])
    assert (problem.code, problem.path) == ("bad_schedule", override)


def test_two_schedules_are_checked_one_by_one(write):
    text = ONE + "rollout: {temperature: {schedule: linear, from: 1, to: 0, over: 3},\n"
    text += "  top_p: {schedule: linear, from: 1, to: 2, over: 3}}\n"
    _, problems = check(write(text))
    assert {(problem.path, problem.line) for problem in problems} == {
        ("rollout.temperature", 7),
        ("rollout.top_p", 8),
    }


def test_a_stage_holds_schedules_and_is_none_itself(write):
    listed = TWO.replace("steps: 20", "steps: 20\n    schedule: linear")
    for text, overrides in ((listed, []), (TWO, ["stages.copy={schedule: linear}"])):
        recipe, [problem] = check(write(text), overrides)
        assert recipe is None
        assert (problem.code, problem.path) == ("unknown_key", "stages.copy.schedule")
