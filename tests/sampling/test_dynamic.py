"""Dynamic sampling asks again for groups that cannot teach, as often as its limit allows."""

from __future__ import annotations

import pytest

from agentrecipes.records import Scored, Stop, Task, Trajectory
from agentrecipes.sampling.dynamic import Dynamic

TASK = Task("t", "train", "?")


def group(totals):
    """A group whose attempts got these totals."""
    return [
        Scored(Trajectory(TASK, "g", n, (), Stop.ANSWERED, None, 0), {}, total, ())
        for n, total in enumerate(totals)
    ]


def test_every_task_is_planned_whole():
    [plan] = Dynamic().plan([TASK], 4)
    assert (plan.task, plan.attempts, plan.first, plan.refill) == (TASK, 4, 0, 0)


@pytest.mark.parametrize(
    ("totals", "again"),
    [
        ([(1.0, 1.0), (1.0, 0.0), (0.0, 0.0)], 2),
        ([(1.0, None, 1.0)], 1),  # what could not be scored makes no difference
        ([(None, None)], 1),
        ([(1.0, None, 0.0)], 0),
        ([()], 1),
    ],
)
def test_groups_without_two_different_totals_are_counted(totals, again):
    assert len(Dynamic().refill([group(one) for one in totals], rounds=1)) == again


def test_the_limit_ends_it():
    groups = [group((1.0, 1.0))]
    sampling = Dynamic(limit=3)
    assert [len(sampling.refill(groups, rounds)) for rounds in (1, 2, 3, 4)] == [1, 1, 0, 0]
