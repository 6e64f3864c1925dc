"""The groups of attempts of one iteration: picked, played, scored; sent away or grown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agentrecipes.curricula.drawing import pick_seed
from agentrecipes.errors import RunStopped
from agentrecipes.recipe.schema import Stage
from agentrecipes.records import Scored, Task
from agentrecipes.rollout.collect import collect
from agentrecipes.rollout.score import score
from agentrecipes.rollout.setting import Job
from agentrecipes.sampling.protocol import Branch, Branches, Group
from agentrecipes.training import ranks
from agentrecipes.training.position import Position, Sampler, on_every_rank

MOST_ROUNDS = 1000  # of collection in one iteration; parts of ours have limits of their own

Played = dict[str, list[Scored]]
"""The scored attempts of each group, in order."""


class Groups:
    """Collects the groups of one stage's iterations."""

    def __init__(self, sampler: Sampler, most_rounds: int = MOST_ROUNDS) -> None:
        self._sampler = sampler
        self._most_rounds = most_rounds
        self._tasks: Sequence[Task] | None = None

    def collect(self, stage: Stage, position: Position) -> tuple[list[Scored], tuple[int, ...]]:
        """All attempts, group by group, and how many groups were collected again, by round.

        Groups that the sampling sends away leave for new ones.

        Raises:
            RunStopped: the sampling, a part from outside, sends groups away without end, or adds
                more attempts to one than it may have.
        """
        rollout = stage.rollout
        groups: list[list[Scored]] = []
        refills: list[int] = []
        count, rounds = rollout.tasks, 0
        while count:
            tasks = self._pick(stage, position, count=count, rounds=rounds)
            plans = [
                replace(plan, refill=rounds)
                for plan in rollout.sampling.plan(tasks, rollout.group_size)
            ]
            jobs = self._sampler.jobs(plans, position.iteration, "rollout")
            groups += self._grown(stage, position, jobs).values()
            rounds += 1
            gone = set(rollout.sampling.refill(groups, rounds))
            groups = [group for number, group in enumerate(groups) if number not in gone]
            count = len(gone)
            refills += [count] if count else []
            if count and rounds >= self._most_rounds:
                name = rollout.sampling.part_name
                raise RunStopped(
                    f"sampling {name!r} still wants other groups after {rounds} rounds"
                )
        self._sampler.engine.rest()
        return [each for group in groups for each in group], tuple(refills)

    def _grown(self, stage: Stage, position: Position, jobs: list[Job]) -> Played:
        """The jobs' groups, with the attempts that the sampling adds to them."""
        played = self._played(stage, position, jobs)
        if not isinstance(stage.rollout.sampling, Branches):
            return played
        first = {job.group: job for job in reversed(jobs)}
        seen = dict.fromkeys(played, 0)
        while True:
            more: list[Job] = []
            for name, attempts in played.items():
                added = self._added(stage, first[name], attempts, seen=seen[name])
                more += _jobs(first[name], attempts, added)
                seen[name] = len(attempts)
            if not more:
                return played
            for name, attempts in self._played(stage, position, more).items():
                played[name] += attempts

    def _added(
        self, stage: Stage, job: Job, attempts: Sequence[Scored], *, seen: int
    ) -> list[Branch]:
        """What the sampling adds to the group that `job` began."""
        size, words = stage.rollout.group_size, len(self._sampler.chat.tokenizer)
        key = (*job.key, "branch", job.task.id, job.refill)
        group = Group(tuple(attempts), seen, size, words, key)
        added: list[Branch] = stage.rollout.sampling.branch(group)
        if len(added) > group.room:
            raise RunStopped(
                f"sampling {stage.rollout.sampling.part_name!r} wants {len(added)} more attempts "
                f"where {len(attempts)} of {size} are there"
            )
        return added

    def _played(self, stage: Stage, position: Position, jobs: list[Job]) -> Played:
        """The scored attempts of each group, in order.

        Every rank plays a share of the groups; where one engine serves all, rank 0 plays them all.
        """
        order = list(dict.fromkeys(job.group for job in jobs))
        own = set(ranks.dealt(order))
        if not on_every_rank(stage.rollout.engine):
            own = set(order if ranks.leads() else [])
        mine = [job for job in jobs if job.group in own]
        trajectories = collect(mine, self._sampler.setting(stage, position)) if mine else []
        played: Played = {group: [] for group in order}
        for share in ranks.gathered(score(trajectories, stage.rewards, stage=stage)):
            for each in share:
                played[each.trajectory.group].append(each)
        return played

    def _pick(self, stage: Stage, position: Position, *, count: int, rounds: int) -> list[Task]:
        if self._tasks is None:
            self._tasks = stage.environment.tasks("train")
        place = {"iteration": position.iteration, "rounds": rounds}
        seed = pick_seed(self._sampler.seed, self._sampler.stage, **place)
        picked: list[Task] = stage.curriculum.pick(
            position.curriculum, self._tasks, count=count, seed=seed
        )
        if not picked:
            raise RunStopped(f"the curriculum found nothing among {len(self._tasks)} tasks")
        return picked


def _jobs(first: Job, attempts: Sequence[Scored], added: Iterable[Branch]) -> list[Job]:
    """One job per added attempt, behind those that are there."""
    jobs = []
    for number, branch in enumerate(added, start=first.attempt + len(attempts)):
        whole = () if branch.attempt is None else attempts[branch.attempt].trajectory.turns
        jobs.append(replace(first, attempt=number, taken=whole[: branch.turns]))
    return jobs
