"""What a stage holds in memory at its peak, term by term, in bytes on one device.

All sizes are for the most that the recipe allows: every trajectory as long as `rollout.tokens`,
every micro-batch as full as `trainer.tokens_per_batch`. A stage holds some things all the time, and
then either what sampling needs or what an update needs; the larger of the two makes the peak.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentrecipes.analysis.plan.shape import BYTES, Shape
from agentrecipes.recipe.schema import Stage

FLOAT = 4
MIB, GIB = 2**20, 2**30
LIBRARIES = {"cpu": 575 * MIB, "gpu": 900 * MIB}  # of a process that has trained nothing yet
SLACK = {"cpu": 0.65, "gpu": 0.1}  # what the allocator holds beside what comes and goes: measured
SCATTERED = 1.5  # the same on a CPU among a model's own modules, whose many small blocks part it
LOGIT_BYTES = GIB  # above this the trainer's output head works in pieces
SHELF_BYTES = GIB  # keys and values that the native engine keeps for the next turn
VLLM_CPU_GIB = 0.25  # vLLM's cache on a CPU where the recipe says nothing
SHARDED = {"deepspeed_1": 1, "deepspeed_2": 2, "deepspeed_3": 3, "fsdp": 3}  # by ZeRO's stages
STATES = {"adamw": 2, "muon": 1, "sgd": 0}  # tensors of the optimizer for each parameter


@dataclass(frozen=True, slots=True)
class Memory:
    """Terms of one stage on one device: ``always``, and what comes in turns on top of it."""

    always: dict[str, int]
    sampling: dict[str, int]
    update: dict[str, int]

    @property
    def peak(self) -> str:
        """Which of the two makes the peak."""
        both = {"sampling": self.sampling, "update": self.update}
        return max(both, key=lambda name: sum(both[name].values()))

    @property
    def terms(self) -> dict[str, int]:
        """The terms at the peak; their sum is the total."""
        return {**self.always, **(self.sampling if self.peak == "sampling" else self.update)}

    @property
    def total(self) -> int:
        return sum(self.terms.values())


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the recipe says of a stage, as numbers."""

    ranks: int
    sharded: int  # 0: nothing; 1: optimizer; 2: gradients too; 3: weights too
    offload: str
    weight: int  # bytes
    active: int  # bytes of an activation
    trained: int  # parameters
    frozen_base: bool

    @classmethod
    def of(cls, stage: Stage, shape: Shape, model: Any) -> Sizes:
        """The numbers for a stage of a recipe whose model part is `model`."""
        trainer, lora = stage.trainer, getattr(model, "lora", None)
        weight = BYTES[getattr(model, "dtype", "fp32")]
        trained = shape.parameters if lora is None else shape.adapter(lora.rank, lora.targets)
        return cls(
            ranks=trainer.devices * trainer.nodes,
            sharded=SHARDED.get(trainer.strategy, 0),
            offload=str(getattr(trainer, "offload", "none")),
            weight=weight,
            active=min(weight, BYTES[trainer.precision]),
            trained=trained,
            frozen_base=lora is not None,
        )

    def share(self, bytes_: int, level: int) -> int:
        """A device's part of what ZeRO cuts into pieces from stage `level` on."""
        return -(-bytes_ // self.ranks) if self.sharded >= level else bytes_


def memory(stage: Stage, shape: Shape, sizes: Sizes, *, device: str) -> Memory:
    """The terms of a stage on one of its devices, ``cpu`` or ``gpu``."""
    return Memory(
        always={"libraries": LIBRARIES[device], **_always(stage, shape, sizes, device=device)},
        sampling=_with_slack(_sampling(stage, shape, sizes, device=device), SLACK[device]),
        update=_with_slack(
            _update(stage, shape, sizes, device=device),
            SCATTERED if device == "cpu" and not by_hand(shape, sizes, device) else SLACK[device],
        ),
    )


def by_hand(shape: Shape, sizes: Sizes, device: str) -> bool:
    """Whether `training/llama.py` trains it: a plain Llama on a CPU."""
    return device == "cpu" and shape.family == "llama" and not sizes.frozen_base


def _with_slack(terms: dict[str, int], slack: float) -> dict[str, int]:
    """The terms, and what the allocator keeps between blocks that were freed in another order."""
    return {**terms, "allocator's slack": int(slack * sum(terms.values()))}


def _always(stage: Stage, shape: Shape, sizes: Sizes, *, device: str) -> dict[str, int]:
    needs = stage.algorithm.needs
    own = 0 if not sizes.frozen_base else sizes.trained * FLOAT
    gradients = sizes.trained * (FLOAT if sizes.frozen_base else sizes.weight)
    states = STATES[stage.optimizer.name] * gradients
    held = sizes.share(shape.parameters * sizes.weight, 3)
    terms = {
        "weights": 0 if sizes.offload == "parameters" else held,
        "adapter": own,
        "gradients": sizes.share(gradients, 2),
        "optimizer": 0 if sizes.offload != "none" else sizes.share(states, 1),
    }
    if sizes.ranks > 1 and sizes.sharded < 2:
        terms["gradients in exchange"] = gradients
    if needs.reference and not sizes.frozen_base:
        terms["reference"] = shape.parameters * sizes.weight
    if needs.value:
        terms["value head"] = (shape.width + 1) * FLOAT * 4
    engine = stage.rollout.engine
    if engine.part_name == "vllm" and not (device == "gpu" and engine.sleep):
        terms |= _vllm(stage, shape, sizes, device=device)  # awake while the trainer trains
    return {name: size for name, size in terms.items() if size}


def _vllm(stage: Stage, shape: Shape, sizes: Sizes, *, device: str) -> dict[str, int]:
    """What vLLM holds in the trainer's process: weights of its own, and its cache.

    On a GPU it takes the share that it is given; this is the least that holds every row.
    """
    engine = stage.rollout.engine
    weight = BYTES[engine.dtype] if engine.dtype else sizes.weight
    cache = engine.cache_gib or (VLLM_CPU_GIB if device == "cpu" else None)
    rows = min(engine.sequences, stage.rollout.concurrency)
    needed = rows * stage.rollout.tokens * cached_token(shape, weight)
    return {
        "engine's weights": shape.parameters * weight,
        "engine's keys and values": int(cache * GIB) if cache else needed,
    }


def cached_token(shape: Shape, size: int) -> int:
    """Bytes of one token's keys and values."""
    return 2 * shape.layers * shape.keys * size


def _sampling(stage: Stage, shape: Shape, sizes: Sizes, *, device: str) -> dict[str, int]:
    """On top, while trajectories or evaluations are sampled."""
    rollout, engine = stage.rollout, stage.rollout.engine.part_name
    if engine == "vllm" and device == "gpu" and stage.rollout.engine.sleep:
        return _vllm(stage, shape, sizes, device=device)
    if engine != "native":
        return {}
    collected = 0 if stage.algorithm.needs.demonstrations else rollout.tasks * rollout.group_size
    measured = stage.evaluation.tasks * stage.evaluation.samples
    rows = min(rollout.concurrency, max(collected, measured))
    whole = rows * rollout.tokens * cached_token(shape, sizes.weight)
    turns = int(getattr(stage.environment, "max_turns", 1))
    kept = min(whole, max(SHELF_BYTES, whole // 2)) if turns > 1 else 0
    return {
        "keys and values": whole + kept,
        "logits of the next token": rows * shape.vocabulary * FLOAT * 4,
    }


def micro_batch(stage: Stage) -> tuple[int, int]:
    """(tokens, scored tokens) in the fullest micro-batch that the recipe allows."""
    trainer, rollout = stage.trainer, stage.rollout
    if stage.algorithm.needs.demonstrations:
        rows = trainer.rows_per_step
    else:
        rows = -(-rollout.tasks * rollout.group_size // trainer.minibatches)
    tokens = min(max(trainer.tokens_per_batch, rollout.tokens), rows * rollout.tokens)
    return tokens, tokens


def kept_numbers(shape: Shape, sizes: Sizes, *, device: str) -> int:
    """Numbers that a layer keeps of each token for the backward pass.

    By hand: both norms' inputs and outputs; turned queries and keys, values, and what attention
    made of them; gate, up, and their product.
    """
    if by_hand(shape, sizes, device):
        return 4 * shape.width + 2 * shape.queries + 2 * shape.keys + 3 * shape.mlp
    norms = 4 if sizes.frozen_base else 6
    return norms * shape.width + 3 * shape.queries + 2 * shape.keys + 4 * shape.mlp


def _update(stage: Stage, shape: Shape, sizes: Sizes, *, device: str) -> dict[str, int]:
    """On top, while an update goes forward and back."""
    tokens, scored = micro_batch(stage)
    kept = kept_numbers(shape, sizes, device=device)
    passing = 2 * shape.mlp + 4 * shape.width  # gradients of the layer that is at work
    row = shape.vocabulary * FLOAT * (5 if stage.algorithm.needs.entropy else 3)
    pieces = LOGIT_BYTES if scored * shape.vocabulary * FLOAT * 3 > LOGIT_BYTES else scored * row
    return {
        "activations": tokens * (shape.layers * kept * sizes.active + passing * FLOAT),
        "logits": pieces,
    }
