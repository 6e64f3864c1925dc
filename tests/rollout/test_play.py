"""Episodes without a model follow the same rules as a policy's."""

import pytest
from playground import BROKEN, TASK, House, play_texts

from agentrecipes.components import build
from agentrecipes.environments.protocol import OnInvalid
from agentrecipes.records import Action, Call, Stop, Task
from agentrecipes.rewards.protocol import View
from agentrecipes.rollout.play import Player, play, texts


@pytest.mark.parametrize(
    "said",
    [
        ("look door !", "say yes !"),
        ("x", "y", "z", "say yes !"),
        ("look wall !",),
        ("look door !",) * 4,
    ],
)
def test_texts_lead_where_the_same_texts_of_a_policy_lead(said):
    rules = OnInvalid(limit=1)
    house = House(outcomes={"wall": BROKEN["wall"]}, on_invalid=rules)
    trajectory, _ = play_texts(*said, house=house)
    played = play(house, TASK, agent=texts(said))
    assert played.view == View.of(trajectory)
    assert (played.stop, played.answer) == (trajectory.stop, trajectory.answer)
    assert (played.turns, played.error) == (len(trajectory.turns), trajectory.error)
    assert house.opened[-1].closed


def test_an_agents_actions_are_written_and_read_back():
    def agent(task: Task) -> Player:
        assert task == TASK
        return lambda seen: (
            Action(answer=seen.split()[-1])
            if seen
            else Action(calls=(Call("look", {"at": "yes"}),))
        )

    played = play(House(), TASK, agent=agent)
    assert played.view.actions == ("look yes !", "say it !")
    assert (played.stop, played.answer, played.turns) == (Stop.ANSWERED, "it", 2)


def test_texts_that_run_out_leave_the_episode_cancelled():
    played = play(House(), TASK, agent=texts(["look door !"]))
    assert (played.stop, played.turns) == (Stop.CANCELLED, 1)


def test_the_oracle_of_the_generated_world_always_answers_right():
    protocol = {"name": "search_tags", "queries_per_turn": 3}
    world = build("environment", {"name": "search", "dataset": "world", "protocol": protocol})
    for task in world.tasks("train")[:20]:
        played = play(world, task, agent=world.oracle, seed=3)
        assert played.answer is not None
        assert played.answer in played.view.task.gold_answers
        assert played.view.task.question != task.question  # it was renamed
