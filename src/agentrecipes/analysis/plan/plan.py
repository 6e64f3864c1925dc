"""Whether a recipe fits, how long an iteration takes, and what to change; before it is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from agentrecipes.analysis.plan.machine import Device, at_hand, speed_of
from agentrecipes.analysis.plan.memory import GIB, Memory, Sizes, memory, micro_batch
from agentrecipes.analysis.plan.shape import Shape, shape_of
from agentrecipes.analysis.plan.speed import Clock, seconds, tokens
from agentrecipes.errors import Problem, RecipeError
from agentrecipes.recipe.load import Recipe
from agentrecipes.recipe.schema import Stage

Reload = Callable[[Sequence[str]], Recipe]
"""The same recipe with overrides added."""
LEAST_TOKENS = 256  # of a micro-batch that is still suggested


def needs(recipe: Recipe, shape: Shape, device: Device) -> dict[str, Memory]:
    """Every stage's memory on a device, with the values that its schedules begin with."""
    found = {}
    for index, plain in enumerate(recipe.stages):
        stage = recipe.stage(index, 0)
        sizes = Sizes.of(stage, shape, recipe.fields.model)
        found[plain.name] = memory(stage, shape, sizes, device=device.kind)
    return found


def times(recipe: Recipe, shape: Shape, clock: Clock) -> list[dict[str, Any]]:
    """Every stage's most tokens and seconds in an iteration, or an optimizer step."""
    told = []
    for index, plain in enumerate(recipe.stages):
        stage = recipe.stage(index, 0)
        sizes = Sizes.of(stage, shape, recipe.fields.model)
        spent = seconds(stage, shape, sizes, clock=clock)
        told.append({"name": plain.name, "tokens": tokens(stage), "seconds": spent})
    return told


def plan(recipe: Recipe, reload: Reload, *, device_bytes: int | None = None) -> dict[str, Any]:
    """The plan of the stage that needs most memory.

    Keys: memory {total_bytes, terms [{name, bytes}]}, tokens_per_iteration, seconds_per_iteration,
    fits, suggestions (``key=value`` and what it would need), and what it rests on: stage, stages,
    device, available_bytes, basis. `device_bytes` stands in for the memory of the device at hand.

    Raises:
        RecipeError: the model's ``config.json`` is not at hand.
    """
    device = at_hand(recipe.stages[0].trainer)
    if device_bytes is not None:
        device = replace(device, bytes=device_bytes)
    shape, speed = shape_of(recipe.fields.model), speed_of(device)
    memories = needs(recipe, shape, device)
    name, worst = max(memories.items(), key=lambda pair: pair[1].total)
    stages = times(recipe, shape, Clock(device, speed))
    longest = max(stages, key=lambda each: float(each["seconds"]))
    fits = worst.total <= device.bytes
    return {
        "memory": {
            "total_bytes": worst.total,
            "terms": [{"name": term, "bytes": size} for term, size in worst.terms.items()],
        },
        "tokens_per_iteration": longest["tokens"],
        "seconds_per_iteration": longest["seconds"],
        "fits": fits,
        "suggestions": [] if fits else list(suggestions(recipe, reload, device)),
        "stage": name,
        "peak": worst.peak,
        "stages": [{**each, "total_bytes": memories[each["name"]].total} for each in stages],
        "device": device.name,
        "available_bytes": device.bytes,
        "basis": f"model: {shape.source}; time: {speed.basis}",
    }


def shortage(recipe: Recipe) -> Problem | None:
    """A warning where the recipe needs more memory than the machine at hand has; cheap."""
    try:
        shape = shape_of(recipe.fields.model)
    except RecipeError:
        return None  # its size is not known here
    device = at_hand(recipe.stages[0].trainer)
    name, worst = max(needs(recipe, shape, device).items(), key=lambda pair: pair[1].total)
    if worst.total <= device.bytes:
        return None
    term = max(worst.terms, key=lambda each: worst.terms[each])
    return Problem(
        code="memory",
        path=f"stages.{name}" if len(recipe.stages) > 1 else "",
        message=f"needs some {worst.total / GIB:.1f} GiB, most of it for {term}, and there are "
        f"{device.bytes / GIB:.1f} GiB on {device.name}",
        suggestion="`agentrecipes plan` says what to change.",
        severity="warning",
    )


def suggestions(recipe: Recipe, reload: Reload, device: Device) -> Iterator[str]:
    """Changes that make it fit, the smallest first; the last line says if none does alone."""
    found, smallest = [], None
    for change in _changes(recipe):
        try:
            other = reload([change])
            shape = shape_of(other.fields.model)
        except RecipeError:
            continue  # a rule of the recipe is against it, or it has no stage of that name
        need = max(each.total for each in needs(other, shape, device).values())
        if smallest is None or need < smallest[0]:
            smallest = (need, change)
        if need <= device.bytes:
            found.append(f"{change} (then {need / GIB:.2f} GiB)")
    yield from found[:3]
    if not found and smallest is not None:
        need, change = smallest
        yield f"no one change is enough; {change} comes nearest ({need / GIB:.2f} GiB)"


def _changes(recipe: Recipe) -> Iterator[str]:
    """What could be written instead, from what changes least to what changes most."""
    for index, plain in enumerate(recipe.stages):
        stage = recipe.stage(index, 0)
        alone = len(recipe.stages) == 1  # written at the top level, or as the only one of `stages`
        for place in ("", f"stages.{plain.name}.") if alone else (f"stages.{plain.name}.",):
            yield from _smaller_batches(stage, place)
            yield from _fewer_rows(stage, place)
    model = recipe.fields.model
    if getattr(model, "dtype", None) == "fp32":
        yield "model.dtype=bf16"
    if hasattr(model, "lora") and model.lora is None:
        yield "model.lora={rank: 16}"
    if recipe.stages[0].trainer.devices > 1:
        for strategy in ("deepspeed_1", "deepspeed_2", "deepspeed_3"):
            yield f"trainer.strategy={strategy}"


def _smaller_batches(stage: Stage, place: str) -> Iterator[str]:
    size = micro_batch(stage)[0] // 2
    while size >= max(LEAST_TOKENS, stage.rollout.tokens):
        yield f"{place}trainer.tokens_per_batch={size}"
        size //= 2


def _fewer_rows(stage: Stage, place: str) -> Iterator[str]:
    rows = min(stage.rollout.concurrency, stage.rollout.tasks * stage.rollout.group_size) // 2
    while rows >= stage.rollout.group_size and not stage.algorithm.needs.demonstrations:
        yield f"{place}rollout.concurrency={rows}"
        rows //= 2
