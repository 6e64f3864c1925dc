"""What flows through a run: one frozen type for each stage, and no field that means "not yet".

``Task → Trajectory (of Turns) → Scored → Batch``. Token ids are the record; text is a view.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


class Source(IntEnum):
    """Who wrote a token. Every mask comes from this label, never from searching for tags."""

    PROMPT = 0  # the opening messages, chat template included; all of an edited context
    POLICY = 1  # sampled by the policy
    OBSERVATION = 2  # the environment's answer
    TEMPLATE = 3  # what the chat template puts between messages


class Stop(StrEnum):
    """Why a trajectory ended."""

    ANSWERED = "answered"  # the policy gave its answer, or the environment was done
    TURNS = "turns"  # environment.max_turns reached without an answer
    TOKENS = "tokens"  # rollout.tokens reached, or a turn hit rollout.tokens_per_turn unfinished
    INVALID = "invalid"  # too many actions that could not be read (environment.on_invalid)
    TOOL_ERROR = "tool_error"  # the environment or a tool failed (TaskFailed)
    ENGINE_ERROR = "engine_error"  # the sampler failed
    CANCELLED = "cancelled"  # the run was interrupted
    VOID = "void"  # nothing was sampled: the prompt alone filled the budget


@dataclass(frozen=True, slots=True)
class Task:
    """One question with its gold answers; what an environment opens.

    Example: ``Task("c2-17", "train", "Where was X's author born?", ("Rome",), {"type":
    "chain-2"})``.
    """

    id: str
    split: str
    question: str
    gold_answers: tuple[str, ...] = ()  # any one counts
    data: Mapping[str, Any] = field(default_factory=dict)  # plain values; "type" groups evaluations

    @property
    def type(self) -> str:
        """The kind of question, for results broken down by kind; the data's ``type``, else ""."""
        return str(self.data.get("type", ""))


@dataclass(frozen=True, slots=True)
class Call:
    """One use of a tool that an action asks for: ``Call("search", {"query": "Rome"})``."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Action:
    """What a policy's text says: calls, an answer, or the error that says why it could not be read.

    Example: ``<think> t </think> <search> q </search>`` is
    ``Action(thought="t", calls=(Call("search", {"query": "q"}),))``.
    """

    thought: str = ""
    calls: tuple[Call, ...] = ()
    answer: str | None = None
    error: str | None = None  # the action is invalid if it is given

    @property
    def valid(self) -> bool:
        return self.error is None


@dataclass(frozen=True, slots=True)
class Passage:
    """One piece of a corpus: ``Passage("12", "Paris", "Paris is the capital of France.")``."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What happened when a tool was called; what that means is the environment's business."""

    call: Call
    text: str = ""
    passages: tuple[Passage, ...] = ()  # where the tool is a search
    error: str | None = None
    # what became of the call, as an environment counts it: result, error, raised, late, cut, ...
    outcome: str = field(default="result", compare=False)


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message, ``Message("user", "2 + 2?")``; roles: system, user, assistant, tool."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One policy message and the observation it drew.

    Example: prompt ``[1, 2]``, the policy samples ``[7, 8]``, a tool replies ``[5]``; the next
    turn's prompt is ``[1, 2, 7, 8, 5]`` unless the context was edited.
    """

    prompt: tuple[int, ...]  # every token the policy saw before acting
    action: tuple[int, ...]  # what the policy sampled
    logp_rollout: tuple[float, ...]  # nats, one per action token, at the sampling temperature
    observation: tuple[int, ...]  # what followed the action: reply and template; never trained on
    prompt_sources: tuple[Source, ...]  # one per prompt token
    observation_sources: tuple[Source, ...]  # one per observation token: OBSERVATION or TEMPLATE
    action_text: str
    observation_text: str
    calls: tuple[Call, ...]
    valid: bool  # the action could be read
    reward: float  # given by the environment for this turn; 0.0 where it gives none
    policy_version: int  # of the first action token
    engine_seconds: float
    tool_seconds: float
    policy_versions: tuple[int, ...] = ()  # by action token, where new weights came in between
    outcomes: tuple[str, ...] = ()  # what became of each call, where the environment says it


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One attempt at one task, from first prompt to stop. It holds no reward.

    ``task`` is the task as it was posed (after renaming), so that its gold answers are the ones to
    score against.
    """

    task: Task
    group: str  # attempts at the same task in one iteration share it
    attempt: int  # from 0
    turns: tuple[Turn, ...]
    stop: Stop
    answer: str | None
    policy_version: int
    role: str = "policy"
    seconds: float = 0.0
    error: str = ""  # what failed, where stop is tool_error or engine_error
    taken_turns: int = 0  # that it took over from another attempt of its group, and went on from

    @property
    def policy_tokens(self) -> int:
        return sum(len(turn.action) for turn in self.turns)

    @property
    def observation_tokens(self) -> int:
        return sum(len(turn.observation) for turn in self.turns)


@dataclass(frozen=True, slots=True)
class Judgement:
    """One reply of a judge as it was said: ``Judgement("judge", "openai m", "Verdict: no", 0.0)``.

    Without a value, ``problem`` says why: the reply could not be read, or there was none.
    """

    part: str  # label of the reward that asked
    judge: str  # who was asked: kind and model
    reply: str | None  # raw text; null where the judge failed
    value: float | None  # what the reward read in it
    problem: str = ""
    prompt: str = ""  # SHA-256 (hex) of what was asked
    cached: bool = False  # answered before, and kept
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Scored:
    """A trajectory with what its reward parts gave; null is "could not be computed", never zero."""

    trajectory: Trajectory
    parts: Mapping[str, float | None]  # name → value over the whole trajectory, before its weight
    total: float | None  # weighted sum; null drops the trajectory from the update
    per_turn: tuple[float, ...]  # total by turn; a trajectory part counts on the last turn
    masked: bool = False  # total is null by a part with ``missing: mask``, and none drops it
    judgements: tuple[Judgement, ...] = ()  # what judges replied, in the order they were asked
    weights: Mapping[str, float] = field(default_factory=dict)  # of the parts in the total


@dataclass(frozen=True, slots=True)
class Place:
    """Where trajectories stand in a run; training rows have split ``train`` and mode ``sampled``.

    Example: ``Place("reinforce", 10, "dev", "greedy")``; iteration is the number of updates before.
    """

    stage: str
    iteration: int
    split: str
    mode: str


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """One metric of one evaluation, as the summary lists it; null is "could not be computed"."""

    stage: str
    iteration: int
    split: str
    mode: str
    metric: str
    value: float | None  # mean over tasks
    tasks: int  # tasks that have a value
    standard_error: float | None  # of the mean over tasks; null for fewer than two tasks
    by: Mapping[str, float]  # kind of question → mean
    rounds_mean: float  # turns with calls, mean over trajectories


def _absent() -> Tensor:
    import torch

    return torch.zeros(0)


@dataclass(frozen=True, slots=True)
class Batch:
    """What a loss sees: B logical rows of T tokens, of N trajectories. All tensors share a device.

    Position t of a row is its token t; ``logp_old[b, t]`` is the log-probability of token t given
    the tokens before it. Off ``action_mask`` every (B, T) tensor is 0 (or False) and must not
    matter. A field an algorithm does not need is absent (an empty tensor of shape (0,)), never a
    guess.
    """

    action_mask: Tensor  # (B, T) bool, True on policy tokens that are trained on
    logp_old: Tensor  # (B, T) float32 at least, nats
    logp_rollout: Tensor  # (B, T) from the sampler
    logp_ref: Tensor  # (B, T) or (0,)
    values_old: Tensor  # (B, T) critic at the start of the iteration, or (0,)
    advantage: Tensor  # (B, T) float
    value_target: Tensor  # (B, T) return the critic should predict, or (0,)
    token_weight: Tensor  # (B, T) loss weight of a token for algorithms that read data, or (0,)
    turn_index: Tensor  # (B, T) int64, turn of the token; -1 off the actions
    turn_rewards: Tensor  # (N, K) reward by turn, 0 beyond a trajectory's turns
    returns: Tensor  # (N,) float64, one per trajectory
    trajectory: Tensor  # (B,) int64: whose row this is
    group: Tensor  # (N,) int64: group of a trajectory
    # denominators: of the whole optimizer step, over all its micro-batches and ranks
    action_tokens: float  # tokens in the action mask, and those of masked trajectories
    sequences: float  # trajectories with an action token, masked ones too
    total_weight: float  # sum of token_weight
    kl_coefficient: float  # in force this iteration (adaptive controllers move it)
    turns: float = 0.0  # ... turns that hold an action token; for algorithms that value turns
    turn_state: Tensor = field(
        default_factory=_absent
    )  # (N, K) int64: equal in a group where equal
    # observations came before the turn, -1 beyond a trajectory's turns; or (0,)
    segment: Tensor = field(
        default_factory=_absent
    )  # (B, T) int8 of what is balanced by its segments: 1 thought, 2 the rest, 0 neither; or (0,)
    part_returns: Tensor = field(
        default_factory=_absent
    )  # (N, P) each reward by itself, before its weight; or (0,)
    part_weights: tuple[float, ...] = ()  # P of them
