"""One task → one Trajectory: prompt, action, observation, and again, until something ends it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from agentrecipes.engines.protocol import Request, Sample
from agentrecipes.environments.context import context_of
from agentrecipes.environments.protocol import Episode, Outcome
from agentrecipes.environments.stepping import Past
from agentrecipes.errors import TaskFailed
from agentrecipes.records import Action, Source, Stop, Trajectory, Turn
from agentrecipes.rollout.chat import Labelled
from agentrecipes.rollout.decision import Decision, cut_short, decide, opened
from agentrecipes.rollout.setting import Job, Setting

Sampler = Callable[[Request], Awaitable[Sample]]
"""Gives one turn; whoever provides it decides with whom the request is batched."""


async def play_policy(
    job: Job, setting: Setting, sample: Sampler, *, on_turn: Callable[[Turn], None] | None = None
) -> Trajectory:
    """Play the job's task with the policy. What goes wrong in the task is in the trajectory.

    `on_turn` is told each turn when its observation is there.

    Raises:
        EngineError: the sampler failed.
    """
    started = time.perf_counter()
    run, task = Run(job, setting, on_turn), job.task
    try:
        async with opened(setting.environment, task, job.open_seed) as episode:
            task = episode.task
            await run.play(episode, sample)
    except TaskFailed as error:  # it could not be opened or closed
        run.stop, run.error = Stop.TOOL_ERROR, str(error)
    return Trajectory(
        task=task,
        group=job.group,
        attempt=job.attempt,
        turns=tuple(run.turns),
        stop=run.stop,
        answer=run.answer,
        policy_version=run.turns[0].policy_version if run.turns else setting.policy_version,
        seconds=time.perf_counter() - started,
        error=run.error,
        taken_turns=len(job.taken),
    )


class Run:
    """An episode while it runs; its state is the turns so far and how they ended."""

    def __init__(
        self, job: Job, setting: Setting, on_turn: Callable[[Turn], None] | None = None
    ) -> None:
        self._job = job
        self._setting = setting
        self._on_turn = on_turn
        self._context = context_of(setting.environment)
        self._opening: Labelled = ((), ())
        self._actions: list[Action] = []  # as they were read
        self._shown: tuple[int, ...] = ()  # the turns that the last prompt showed
        self.turns: list[Turn] = []
        self.stop = Stop.VOID
        self.answer: str | None = None
        self.error = ""

    async def play(self, episode: Episode, sample: Sampler) -> None:
        """Add turns until one of them is the last."""
        chat, protocol = self._setting.chat, self._setting.environment.protocol
        self._opening = chat.prompt(episode.messages)
        prompt = await self._taken_over(episode)
        while True:
            room = min(self._setting.tokens_per_turn, self._setting.tokens - len(prompt[0]))
            if room < 1:
                self.stop = Stop.TOKENS if self.turns else Stop.VOID
                return
            drawn = await sample(self._request(prompt[0], room))
            ended = drawn.finish == "eos"
            text = chat.decode(drawn.ids[:-1] if ended else drawn.ids)
            action = protocol.parse(text)
            decision = await self._decide(episode, action, drawn=drawn)
            observation: Labelled = ((), ())
            if decision.stop is None and decision.outcome.context is None:
                shown = decision.outcome.observation
                observation = chat.observation(shown, protocol.observation_role, ended=ended)
            self._add(
                prompt, drawn, observation=observation, read=(text, action), decision=decision
            )
            if decision.stop is not None:
                self.stop, self.error = decision.stop, decision.error
                self.answer = decision.outcome.answer
                return
            prompt = self._next_prompt(prompt, drawn, observation=observation, decision=decision)

    async def _taken_over(self, episode: Episode) -> Labelled:
        """The prompt behind the turns of another attempt, whose tokens are this one's as they are.

        Raises:
            TaskFailed: the environment, asked again, does not answer as it did.
        """
        prompt = self._opening
        for turn in self._job.taken:
            drawn = Sample(turn.action, turn.logp_rollout, "stop", turn.policy_version, 0.0)
            action = self._setting.environment.protocol.parse(turn.action_text)
            decision = await self._decide(episode, action, drawn=drawn)
            shown = decision.outcome.observation
            if decision.stop is not None or shown != turn.observation_text:
                raise TaskFailed(
                    f"the environment does not answer as it did when turn {len(self.turns)} is "
                    f"taken again: {decision.error or shown!r} and not {turn.observation_text!r}. "
                    "`rollout.sampling: branching` needs one that does"
                )
            self.turns.append(replace(turn, engine_seconds=0.0, tool_seconds=decision.seconds))
            observation = (turn.observation, turn.observation_sources)
            prompt = self._next_prompt(prompt, drawn, observation=observation, decision=decision)
        return prompt

    def _request(self, ids: tuple[int, ...], room: int) -> Request:
        job, setting = self._job, self._setting
        return Request(
            ids=ids,
            key=(*job.key, job.task.id, job.attempt, len(self.turns), job.refill),
            max_tokens=room,
            stop=setting.environment.protocol.stop,
            temperature=0.0 if setting.greedy else setting.temperature,
            top_p=1.0 if setting.greedy else setting.top_p,
        )

    async def _decide(self, episode: Episode, action: Action, *, drawn: Sample) -> Decision:
        if cut_short(action, drawn):
            return Decision(Outcome(), Stop.TOKENS)
        past = Past(tuple(self._actions), drawn.logp)
        decision = await decide(self._setting.environment, episode, action=action, past=past)
        self._actions.append(action)
        return decision

    def _add(
        self,
        prompt: Labelled,
        drawn: Sample,
        *,
        observation: Labelled,
        read: tuple[str, Action],
        decision: Decision,
    ) -> None:
        text, action = read
        turn = Turn(
            prompt=prompt[0],
            action=drawn.ids,
            logp_rollout=drawn.logp,
            observation=observation[0],
            prompt_sources=prompt[1],
            observation_sources=observation[1],
            action_text=text,
            observation_text=decision.outcome.observation,
            calls=action.calls,
            valid=action.valid,
            reward=decision.outcome.reward,
            policy_version=drawn.policy_version,
            engine_seconds=drawn.seconds,
            tool_seconds=decision.seconds,
            policy_versions=drawn.policy_versions,
            outcomes=decision.outcome.calls,
        )
        self.turns.append(turn)
        if self._on_turn is not None:
            self._on_turn(turn)

    def _next_prompt(
        self, prompt: Labelled, drawn: Sample, *, observation: Labelled, decision: Decision
    ) -> Labelled:
        """The exact extension of what came before, or a context that was edited."""
        if decision.outcome.context is not None:
            return self._setting.chat.prompt(decision.outcome.context)
        before, self._shown = self._shown, self._context.shown(self._actions)
        if self._shown == (*before, len(self.turns) - 1):
            sources = (Source.POLICY,) * len(drawn.ids)
            ids = (*prompt[0], *drawn.ids, *observation[0])
            return ids, (*prompt[1], *sources, *observation[1])
        return self._edited()

    def _edited(self) -> Labelled:
        """The opening and the turns that are still shown, as they stood: all of it is PROMPT.

        What the policy sampled there was sampled after other tokens, and is trained on in the row
        where it was.
        """
        kept = [self.turns[number] for number in self._shown]
        ids = tuple(id for turn in kept for id in (*turn.action, *turn.observation))
        whole = (*self._opening[0], *ids)
        return whole, (Source.PROMPT,) * len(whole)
