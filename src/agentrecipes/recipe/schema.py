"""The recipe's fields: types, ranges, defaults and, beside each, what it means.

Parts (environment, algorithm, ...) bring their own fields; here is everything else. Schedules are
already plain values when these records are made.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from agentrecipes.components import Component, Fields, FileName, PartOf

Positive = Annotated[int, Field(ge=1)]
Registered = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w \-]*@[A-Za-z][\w\-]*$")]
Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Rate = Annotated[float, Field(gt=0.0, le=1.0)]


def beside(data: Any, own: set[str]) -> Any:
    """``{part, …}`` from an entry in which a part's fields stand beside the `own` ones."""
    if isinstance(data, Component | str):
        return {"part": data}
    if not isinstance(data, dict) or "part" in data:
        return data
    part = {key: value for key, value in data.items() if key not in own}
    return {"part": part, **{key: value for key, value in data.items() if key in own}}


class RewardEntry(Fields):
    """A reward and its share of the return; the return is the weighted sum.

    In YAML the part's own fields stand beside these: ``{name: token_f1, weight: 0.5}``.
    """

    part: Annotated[Any, PartOf("reward")]
    weight: float = 1.0
    scope: Literal["trajectory", "turn", "token"] | None = (
        None  # trajectory: one number, on the last turn; turn: one for each; null: as the part does
    )
    missing: Literal["drop", "mask", "stop"] = "drop"  # what a null does to its trajectory
    as_: Annotated[str | None, Field(alias="as")] = None  # tells two parts of one name apart
    cache: Annotated[str, FileName("made")] | None = (
        None  # folder in which the replies of its judges are kept, and looked up first
    )
    timeout_seconds: Annotated[float, Field(gt=0.0)] | None = (
        None  # longest time for one trajectory; beyond it the value is null
    )

    @model_validator(mode="before")
    @classmethod
    def _split(cls, data: Any) -> Any:
        return beside(data, {"weight", "scope", "missing", "as", "cache", "timeout_seconds"})

    @model_validator(mode="after")
    def _as_the_part_does(self) -> RewardEntry:
        """Spell out the scope, so that a recipe shows it."""
        if self.scope is None:
            object.__setattr__(self, "scope", getattr(self.part, "gives", "trajectory"))
        return self

    @property
    def label(self) -> str:
        """The name under which the part's value is logged."""
        return self.as_ or self.part.part_name

    def dump(self) -> dict[str, Any]:
        """The entry as YAML would write it."""
        own = {"weight": self.weight, "scope": self.scope, "missing": self.missing}
        part: dict[str, Any] = self.part.dump()
        rare = {"as": self.as_, "cache": self.cache, "timeout_seconds": self.timeout_seconds}
        return {**part, **own, **{key: value for key, value in rare.items() if value is not None}}


class Rollout(Fields):
    """How trajectories are collected."""

    tasks: Positive = 16  # tasks an iteration
    group_size: Positive = 8  # attempts a task
    temperature: Annotated[float, Field(gt=0.0)] = 1.0
    top_p: Rate = 1.0
    tokens_per_turn: Positive = 256  # most tokens the policy may sample in one turn
    tokens: Positive = 2048  # most tokens of a trajectory, prompt and observations included
    engine: Annotated[Any, PartOf("engine"), Field(validate_default=True)] = "native"
    sampling: Annotated[Any, PartOf("sampling"), Field(validate_default=True)] = "independent"
    replay: Annotated[Any, PartOf("replay")] | None = None  # what is kept and trained on again
    concurrency: Positive = 256  # most episodes at once
    order: Literal["fixed", "ready"] | None = (
        None  # fixed: batches in a fixed order; null: the engine's own
    )
    max_lag: Count = 0  # iterations a sample may be older than the weights; 0 is on-policy


class Optimizer(Fields):
    """One optimizer with parameter groups."""

    name: Literal["adamw", "muon", "sgd"] = (
        "adamw"  # muon: orthogonalised momentum for the network's matrices, AdamW for the rest
    )
    learning_rate: Annotated[float, Field(gt=0.0)] = 1e-5
    value_learning_rate: Annotated[float, Field(gt=0.0)] | None = (
        None  # of the value head; null: learning_rate
    )
    betas: tuple[Share, Share] = (0.9, 0.95)
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.0
    warmup_steps: Count = 0  # optimizer steps from 0 to the full rate
    decay: Literal["constant", "linear", "cosine"] = "constant"  # over the stage, after the warm-up
    decay_to: Share = 0.1  # share of the learning rate at the end of the stage


class Trainer(Fields):
    """How a batch becomes an update."""

    strategy: Literal[
        "auto", "single", "ddp", "deepspeed_1", "deepspeed_2", "deepspeed_3", "fsdp"
    ] = "auto"  # auto: ddp where there are several devices; deepspeed_N: ZeRO's stage N
    offload: Literal["none", "optimizer", "parameters"] = (
        "none"  # what DeepSpeed keeps in the host's memory; parameters: these and the optimizer
    )
    accelerator: Literal["auto", "cpu", "gpu"] = "auto"
    devices: Positive = 1  # processes on a machine: one a GPU, or on CPUs as many as are said
    nodes: Positive = 1  # machines; more than one: started by torchrun, SLURM or Kubernetes
    threads: Positive = 1  # CPU threads of a process
    precision: Literal["fp32", "bf16"] = "fp32"
    tokens_per_batch: Positive = 8192  # most tokens in one micro-batch
    rows_per_step: Positive = (
        32  # demonstrations in one optimizer step, for algorithms that read data
    )
    minibatches: Positive = 1  # optimizer steps into which an iteration's trajectories are split
    epochs: Positive = 1  # passes over an iteration's trajectories
    share_prefix: bool = True  # what rows begin with in common is computed once
    gradient_clip: Annotated[float, Field(gt=0.0)] | None = 1.0  # largest gradient norm
    checkpoint_every: Positive = 50  # iterations, or steps for algorithms that read data
    keep: Positive = 2  # checkpoints kept


class Evaluation(Fields):
    """How the policy is measured. It does not depend on the rewards."""

    every: Count = 10  # iterations of a collecting stage; 0: only before stages and at the end
    tasks: Positive = 100  # tasks per evaluation
    modes: Annotated[tuple[Literal["sampled", "greedy"], ...], Field(min_length=1)] = (
        "sampled",
        "greedy",
    )
    split: Literal["train", "dev", "test"] = "dev"
    metrics: tuple[Annotated[Any, PartOf("reward")], ...] | None = None  # null: the dataset's own
    samples: Positive = 1  # attempts a task in mode sampled; more than one also gives pass@k


class Tracking(Fields):
    """Where runs are shown."""

    backend: Literal["mlflow", "none"] = "mlflow"
    uri: str | None = None  # null: mlflow.db in the runs folder
    experiment: str | None = None  # null: the recipe's name
    traces: Count | None = 6  # trajectories stored as traces per evaluation; null: all of them
    registered_as: Registered | None = None  # the model's name and alias in MLflow: searcher@best


class NoSignal(Fields):
    """The sampled score before a collecting stage is too low for its rewards to teach anything."""

    below: Share = 0.05
    action: Literal["warn", "stop"] = "stop"


class DeadType(Fields):
    """A question type that imitation has not learned at all: RL would never revive it.

    Measured by teacher forcing: accuracy on the interchangeable names of the oracle's actions.
    """

    below: Share = 0.9
    action: Literal["warn", "stop", "extend"] = "extend"
    steps: Positive = 300  # optimizer steps of one extension
    times: Positive = 4  # extensions at most, then a warning
    tasks: Positive = 20  # oracle traces per type


Act = Literal["warn", "pause", "stop"]  # pause: save a checkpoint, and stop


class ConstantReward(Fields):
    """All totals of an iteration are alike, or null, again and again: something has failed.

    Not where they came to be alike at the best that there was: then the tasks are solved.
    """

    iterations: Positive = 3  # in a row
    action: Act = "pause"


class Gaming(Fields):
    """A reward rises while the held-out score falls: the policy pleases the reward, not the task.

    Compared are evaluations of the sampled policy, and the reward's means between them.
    """

    evaluations: Annotated[int, Field(ge=2)] = 3  # in a row in which the score falls
    fall: Annotated[float, Field(gt=0.0)] = 0.02  # least fall of the score from first to last
    rise: Annotated[float, Field(gt=0.0)] = 0.02  # least rise of the reward from first to last
    action: Act = "warn"


class Collapse(Fields):
    """The policy has lost something that it had; each limit is off where it is null."""

    window: Positive = 5  # iterations that are averaged
    valid: Rate | None = 0.5  # least share of readable turns, of its best
    reward: Rate | None = 0.5  # least mean total, of its best, where that is above 0
    entropy: Rate | None = 0.05  # least entropy of the sampled tokens, of the first window's
    kl: Annotated[float, Field(gt=0.0)] | None = None  # most nats from the reference
    length: Annotated[float, Field(gt=1.0)] | None = (
        None  # most tokens of a trajectory, and by the inverse least, of the first window's
    )
    action: Act = "pause"


class Tripwires(Fields):
    """Rules that warn about a run or stop it; what is written is on."""

    no_signal: NoSignal | None = None
    dead_type: DeadType | None = None
    constant_reward: ConstantReward | None = None
    gaming: Gaming | None = None
    collapse: Collapse | None = None


class Example(Fields):
    """A transcript and what its reward parts must be; ``check --rewards`` runs it."""

    task: dict[str, Any]
    turns: tuple[dict[str, Any], ...]
    expect: dict[str, float | None]


class Stage(Fields):
    """One stage: the top level's fields with the stage's own merged over them."""

    name: str
    environment: Annotated[Any, PartOf("environment")]
    rewards: Annotated[tuple[RewardEntry, ...], Field(min_length=1)]
    algorithm: Annotated[Any, PartOf("algorithm")]
    curriculum: Annotated[Any, PartOf("curriculum"), Field(validate_default=True)] = "uniform"
    demonstrations: Annotated[Any, PartOf("demonstrations")] | None = None
    rollout: Annotated[Rollout, Field(default_factory=Rollout, validate_default=True)]
    optimizer: Optimizer = Optimizer()
    trainer: Trainer = Trainer()
    evaluation: Evaluation = Evaluation()
    tripwires: Tripwires = Tripwires()
    steps: Positive | None = None  # length in optimizer steps, for algorithms that read data
    iterations: Positive | None = None  # length in iterations, for algorithms that collect


class RecipeFields(Fields):
    """The resolved recipe."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_\-]*$")]
    version: str = "0.1.0"
    seed: Count = 0
    paper: str | None = None  # link to the paper the recipe re-makes
    requires: tuple[str, ...] = ()  # extras that must be installed, e.g. [vllm]
    model: Annotated[Any, PartOf("model")]
    tracking: Tracking = Tracking()
    tests: tuple[Example, ...] = ()
    stages: Annotated[tuple[Stage, ...], Field(min_length=1)]
