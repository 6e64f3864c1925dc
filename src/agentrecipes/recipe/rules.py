"""Rules across fields: what pydantic cannot say, because two places must agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentrecipes.components import Component, Fields, suggest
from agentrecipes.errors import AgentRecipesError, Problem, RecipeError
from agentrecipes.recipe.draft import STAGE
from agentrecipes.recipe.effects import idle_problems, is_own
from agentrecipes.recipe.positions import Loc, Node, lookup, plain, split
from agentrecipes.recipe.problems import spot
from agentrecipes.recipe.resolve import Resolved
from agentrecipes.recipe.schema import Stage


@dataclass(frozen=True, slots=True)
class Case:
    """A typed stage with its tree, so that a rule can say where its problem stands."""

    stage: Stage
    tree: Node
    single: bool
    later: tuple[Stage, ...] = ()  # the stage where schedules have their other extremes

    def at(self, loc: Loc, problem: Problem, *, key: bool = False) -> Problem:
        """The problem with the place of `loc`, or of whatever is nearest to it."""
        return spot(self.tree, STAGE, loc).problem(problem, key=key)

    def own(self, loc: Loc) -> Node | None:
        """A value that is written in the stage itself and is not null."""
        node = lookup(self.tree, loc)
        if node is None or node.value is None or not is_own(node, single=self.single):
            return None
        return node

    @property
    def collects(self) -> bool:
        """Whether the stage's algorithm collects trajectories."""
        return not self.stage.algorithm.needs.demonstrations


def stage_problems(resolved: Resolved) -> Iterator[Problem]:
    """Everything that is wrong with one stage although its fields are right one by one."""
    if resolved.needs is not None:
        name = plain(resolved.tree.items["algorithm"]).get("name")
        yield from idle_problems(
            resolved.tree, resolved.needs, algorithm=str(name), single=resolved.single
        )
    if resolved.stage is None:
        return
    case = Case(resolved.stage, resolved.tree, resolved.single, resolved.later)
    if resolved.needs is not None:
        yield from _length(case)
        yield from _demonstrations(case)
        yield from _groups(case)
        yield from _devices(case)
        yield from _strategy(case)
        yield from _minibatches(case)
    yield from _optimizer(case)
    yield from _whole_matrices(case)
    yield from _tokens(case)
    yield from _labels(case)
    yield from _signs(case)
    yield from _scopes(case)
    yield from _caches(case)
    yield from _evaluation(case)
    yield from _dataset_fields(case)
    yield from _own_rules(case)


def _length(case: Case) -> Iterator[Problem]:
    stage, collects = case.stage, case.collects
    key, other = ("iterations", "steps") if collects else ("steps", "iterations")
    if getattr(stage, key) is None and case.own((other,)) is None:
        found = f"{key!r} is missing: nothing says how long the stage is"
        problem = Problem("missing_key", "", found, f"Write `{key}: 100`.")
        yield case.at((key,), problem)


def _demonstrations(case: Case) -> Iterator[Problem]:
    if not case.collects and case.stage.demonstrations is None:
        name = case.stage.algorithm.part_name
        found = f"'demonstrations' is missing: {name} reads data"
        problem = Problem("missing_key", "", found, "Write for example `demonstrations: scripted`.")
        yield case.at(("demonstrations",), problem)


def _groups(case: Case) -> Iterator[Problem]:
    needs = getattr(case.stage.algorithm, "needs", None)
    if getattr(needs, "groups", False) and case.stage.rollout.group_size < 2:
        name = case.stage.algorithm.part_name
        found = f"{name} compares attempts at the same task, but group_size is 1"
        problem = Problem("group_size", "", found, "Write at least `group_size: 2`.")
        yield case.at(("rollout", "group_size"), problem)


def _devices(case: Case) -> Iterator[Problem]:
    trainer, tasks = case.stage.trainer, case.stage.rollout.tasks
    ranks = trainer.devices * trainer.nodes
    if case.collects and tasks % ranks:
        found = f"{ranks} devices do not divide the {tasks} tasks of an iteration"
        hint = f"Write `rollout.tasks: {(tasks // ranks + 1) * ranks}`."
        yield case.at(("trainer", "devices"), Problem("indivisible", "", found, hint))
    if trainer.strategy == "single" and ranks > 1:
        found = f"strategy 'single' uses one device, but {ranks} are given"
        problem = Problem("contradiction", "", found, "Write `strategy: ddp`, or one device.")
        yield case.at(("trainer", "strategy"), problem)


def _strategy(case: Case) -> Iterator[Problem]:
    trainer = case.stage.trainer
    sharded, on_cpu = trainer.strategy.startswith("deepspeed"), trainer.accelerator == "cpu"
    if trainer.strategy == "fsdp" and on_cpu:
        found = "strategy 'fsdp' works on GPUs alone, and the accelerator is 'cpu'"
        problem = Problem("contradiction", "", found, "Write `strategy: deepspeed_3`.")
        yield case.at(("trainer", "strategy"), problem)
    if trainer.offload != "none" and (on_cpu or not sharded):
        why = "a CPU has nothing but the host's memory" if sharded else "DeepSpeed alone does that"
        found = f"offload: {trainer.offload} has no effect: {why}"
        problem = Problem("no_effect", "", found, "Leave it out, or write `strategy: deepspeed_3`.")
        yield case.at(("trainer", "offload"), problem, key=True)
    elif trainer.offload == "parameters" and trainer.strategy != "deepspeed_3":
        found = f"strategy {trainer.strategy!r} keeps the parameters whole on every device"
        hint = "Write `strategy: deepspeed_3`, or `offload: optimizer`."
        yield case.at(("trainer", "offload"), Problem("contradiction", "", found, hint))


def _minibatches(case: Case) -> Iterator[Problem]:
    rollout, minibatches = case.stage.rollout, case.stage.trainer.minibatches
    most = rollout.tasks * rollout.group_size
    if case.collects and minibatches > most:
        found = f"{minibatches} minibatches cannot be made of {most} trajectories"
        problem = Problem("out_of_range", "", found, f"Write at most {most}.")
        yield case.at(("trainer", "minibatches"), problem)


def _optimizer(case: Case) -> Iterator[Problem]:
    optimizer = case.stage.optimizer
    default = type(optimizer).model_fields["decay_to"].get_default()
    if optimizer.decay == "constant" and optimizer.decay_to != default:
        found = "decay_to has no effect: the learning rate is constant"
        problem = Problem("no_effect", "", found, "Write `decay: linear` or `decay: cosine`.")
        yield case.at(("optimizer", "decay_to"), problem, key=True)


def _whole_matrices(case: Case) -> Iterator[Problem]:
    strategy = case.stage.trainer.strategy
    if case.stage.optimizer.name == "muon" and strategy.startswith(("deepspeed", "fsdp")):
        found = f"muon needs whole matrices, and strategy {strategy!r} cuts them into shards"
        problem = Problem("contradiction", "", found, "Write `name: adamw`, or `strategy: ddp`.")
        yield case.at(("optimizer", "name"), problem)


def _tokens(case: Case) -> Iterator[Problem]:
    rollout = case.stage.rollout
    if rollout.tokens_per_turn >= rollout.tokens:
        written = lookup(case.tree, ("rollout", "tokens_per_turn"))
        key = "tokens_per_turn" if written is not None else "tokens"
        found = f"a turn of {rollout.tokens_per_turn} tokens does not fit in {rollout.tokens}"
        hint = "Make `tokens_per_turn` smaller than `tokens`, which counts the prompt too."
        yield case.at(("rollout", key), Problem("contradiction", "", found, hint))


def _labels(case: Case) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, entry in enumerate(case.stage.rewards):
        if entry.label in seen:
            found = f"another reward is called {entry.label!r} too"
            problem = Problem("duplicate_name", "", found, "Tell them apart: `as: another_name`.")
            yield case.at(("rewards", index), problem)
        seen.add(entry.label)


def _signs(case: Case) -> Iterator[Problem]:
    """A weight that a schedule leads through zero turns what was wanted into what is not."""
    for index, entry in enumerate(case.stage.rewards):
        others = [stage.rewards[index].weight for stage in case.later]
        other = next((weight for weight in others if weight * entry.weight < 0), None)
        if other is not None:
            found = f"the weight of {entry.label} begins at {entry.weight:g} and comes to {other:g}"
            hint = "End it at 0: beyond, what was rewarded is punished."
            yield case.at(("rewards", index, "weight"), Problem("bad_schedule", "", found, hint))


def _scopes(case: Case) -> Iterator[Problem]:
    for index, entry in enumerate(case.stage.rewards):
        gives = getattr(entry.part, "gives", None)
        if entry.scope == "token" or (entry.scope == "turn" and gives == "trajectory"):
            by = "one value per turn" if gives == "turn" else "one number for the trajectory"
            found = f"scope: {entry.scope} has no effect: {entry.part.part_name} gives {by}"
            hint = "Leave it out; a number counts on the last turn."
            problem = Problem("no_effect", "", found, hint)
            yield case.at(("rewards", index, "scope"), problem, key=True)


def _caches(case: Case) -> Iterator[Problem]:
    for index, entry in enumerate(case.stage.rewards):
        asks = any(part.kind == "judge" for _, part in parts_in(entry.part))
        if entry.cache is not None and not asks:
            found = f"cache has no effect: {entry.label} asks no judge"
            problem = Problem("no_effect", "", found, "Leave it out.")
            yield case.at(("rewards", index, "cache"), problem, key=True)


def _evaluation(case: Case) -> Iterator[Problem]:
    evaluation = case.stage.evaluation
    if evaluation.samples > 1 and "sampled" not in evaluation.modes:
        found = "samples has no effect: greedy attempts are all alike"
        problem = Problem("no_effect", "", found, "Add `sampled` to `modes`.")
        yield case.at(("evaluation", "samples"), problem, key=True)
    for index, mode in enumerate(evaluation.modes):
        if mode in evaluation.modes[:index]:
            found = f"the mode {mode!r} stands there twice"
            problem = Problem("duplicate_name", "", found, "Leave it out.")
            yield case.at(("evaluation", "modes", index), problem)


def _dataset_fields(case: Case) -> Iterator[Problem]:
    dataset = getattr(case.stage.environment, "dataset", None)
    if dataset is None or not hasattr(type(dataset), "fields"):
        return
    try:
        given = dataset.fields
    except RecipeError as error:
        yield from (case.at(("environment", "dataset"), problem) for problem in error.problems)
        return
    except (AgentRecipesError, OSError, ValueError) as error:
        hint = "Correct the file, or name another one."
        problem = Problem("bad_data", "", f"the data cannot be read: {error}".rstrip("."), hint)
        yield case.at(("environment", "dataset"), problem)
        return
    for loc, part in parts_in(case.stage):
        if part.kind != "reward":
            continue
        for name in sorted(getattr(part, "reads", frozenset()) - given):
            found = (
                f"{part.part_name} reads {name!r}, which the dataset {dataset.part_name!r} lacks"
            )
            yield case.at(loc, Problem("missing_field", "", found, suggest(name, given)))


def _own_rules(case: Case) -> Iterator[Problem]:
    """What parts find wrong with themselves, over all that schedules make of them.

    A contradiction in some iteration is one; what has no effect must have none in any.
    """
    told = {problem.code for problem in _groups(case)}  # algorithms say the same of themselves
    found = [_said_by_parts(stage) for stage in (case.stage, *case.later)]
    for key, (loc, problem) in {
        k: each for said in reversed(found) for k, each in said.items()
    }.items():
        idle = problem.code == "no_effect"
        if problem.code in told or (idle and not all(key in said for said in found)):
            continue
        inside = split(problem.path) if problem.path else ()
        on_key = problem.code in ("no_effect", "unknown_key")
        yield case.at((*loc, *inside), problem, key=on_key)


def _said_by_parts(stage: Stage) -> dict[tuple[object, ...], tuple[Loc, Problem]]:
    """The problems of each part, with its path."""
    return {
        (loc, problem.code, problem.path): (loc, problem)
        for loc, part in parts_in(stage)
        for problem in part.rules(stage)
    }


def parts_in(value: Any, loc: Loc = ()) -> Iterator[tuple[Loc, Component]]:
    """Every part inside a typed value, with its path as YAML writes it."""
    if isinstance(value, Component):
        yield loc, value
    if isinstance(value, Fields):
        for key, field in type(value).model_fields.items():
            inside = getattr(value, key)
            wrapped = key == "part" and isinstance(inside, Component)
            yield from parts_in(inside, loc if wrapped else (*loc, field.alias or key))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from parts_in(item, (*loc, str(key)))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from parts_in(item, (*loc, index))


def told_once(problems: list[Problem]) -> list[Problem]:
    """In the order of the file, and without repetitions: the top level is wrong in every stage."""
    kept: dict[tuple[object, ...], Problem] = {}
    for problem in problems:
        place = (problem.file, problem.line, problem.column, problem.path)
        kept.setdefault((problem.code, *place), problem)
    return sorted(kept.values(), key=lambda p: (p.file or "", p.line or 0, p.column or 0))
