"""``env``: play a recipe's environment without a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from agentrecipes.cli.arguments import Json, Parts, Profile, RecipeWords, open_recipe
from agentrecipes.cli.output import emit_json, figure, table
from agentrecipes.components import suggest
from agentrecipes.errors import RecipeError
from agentrecipes.numerics.streams import derive

if TYPE_CHECKING:
    from agentrecipes.environments.protocol import Environment
    from agentrecipes.recipe.load import Recipe
    from agentrecipes.recipe.schema import Stage
    from agentrecipes.records import Task
    from agentrecipes.rollout.play import Player

    Make = Callable[[Task], Player]

Agent = Annotated[
    Literal["random", "oracle", "script"],
    typer.Option(help="Who plays: well-formed random actions, the oracle, or transcripts."),
]
Script = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Transcripts to play with --agent script.")
]
Episodes = Annotated[int, typer.Option(min=1, help="How many tasks are played.")]
StageName = Annotated[
    str | None,
    typer.Option(
        "--stage", metavar="NAME", help="Default: the last. @100: as it is in iteration 100."
    ),
]
Split = Annotated[Literal["train", "dev", "test"], typer.Option(help="Which tasks are played.")]


def play(  # noqa: PLR0913 - a command's parameters are its options
    words: RecipeWords,
    agent: Agent = "oracle",
    script: Script = None,
    episodes: Episodes = 5,
    stage: StageName = None,
    split: Split = "train",
    profile: Profile = None,
    parts: Parts = None,
    as_json: Json = False,
) -> None:
    """Play a recipe's environment with a scripted agent: is the reward what you think it is?"""
    if (agent == "script") != (script is not None):
        raise RecipeError("--agent script and --script FILE belong together")
    recipe = open_recipe(words, profile, parts=parts)
    chosen = stage_of(recipe, stage)
    environment = chosen.environment
    if script is not None:
        pairs = scripted(environment, script)
    else:
        tasks = list(environment.tasks(split))
        pairs = [(task, player(environment, agent, recipe.seed)) for task in tasks[:episodes]]
    told = [
        episode(chosen, task, make=make, seed=derive(recipe.seed, "env", index))
        for index, (task, make) in enumerate(pairs)
    ]
    totals = [one["total"] for one in told if one["total"] is not None]
    mean_total = sum(totals) / len(totals) if totals else None
    if as_json:
        emit_json({"episodes": told, "mean_total": mean_total})
    else:
        typer.echo(shown(told, mean_total))


def player(environment: Environment, agent: str, seed: int) -> Make:
    """What makes the agent of an episode: the oracle's, or one that acts at random."""
    if agent == "oracle":
        return environment.oracle
    return lambda task: environment.random(task, derive(seed, "env-random", task.id))


def scripted(environment: Environment, path: Path) -> list[tuple[Task, Make]]:
    """Each transcript's task, with an agent that says what stands there.

    A task that the environment has under that id is the environment's own, with all its data.
    """
    from agentrecipes.rollout.play import texts
    from agentrecipes.rollout.score import read_transcripts

    own: dict[str, Task] = {}
    for split in ("test", "dev", "train"):
        own |= {task.id: task for task in environment.tasks(split)}
    read = read_transcripts(path, environment)
    return [(own.get(view.task.id, view.task), texts(view.actions)) for _, view in read]


def episode(stage: Stage, task: Task, *, make: Make, seed: int) -> dict[str, Any]:
    """One episode, played and scored, as ``--json`` tells it."""
    from agentrecipes.rollout.play import play as play_episode
    from agentrecipes.rollout.score import score_in

    played = play_episode(stage.environment, task, agent=make, seed=seed)
    scores = score_in(stage, [played.view])[0]
    return {
        "task": task.id,
        "turns": played.turns,
        "stop": str(played.stop),
        "answer": played.answer,
        "parts": scores.parts,
        "total": scores.total,
        "question": played.view.task.question,
        "transcript": [
            {"action": action, "observation": observation or None}
            for action, observation in zip(
                played.view.actions, played.view.observations, strict=True
            )
        ],
        "error": played.error or None,
        "outcomes": dict(Counter(each for turn in played.outcomes for each in turn)),
    }


def shown(told: list[dict[str, Any]], mean_total: float | None) -> str:
    """The first episode in full, then one line for each."""
    lines = []
    if told:
        lines.append(f"{told[0]['task']}: {told[0]['question']}")
        for turn in told[0]["transcript"]:
            lines += [
                f"> {turn['action']}",
                *([turn["observation"]] if turn["observation"] else []),
            ]
        lines.append("")
    columns = ("task", "turns", "stop", "answer", "total")
    parts = list(dict.fromkeys(name for one in told for name in one["parts"]))
    rows = ([*(one[key] for key in columns), *(one["parts"].get(p) for p in parts)] for one in told)
    lines.append(table((*columns, *parts), rows))
    calls: Counter[str] = Counter()
    for one in told:
        calls.update(one["outcomes"])
        lines += [f"{one['task']} failed: {one['error']}"] if one["error"] else []
    if calls:
        lines.append(f"calls: {', '.join(f'{n} {name}' for name, n in sorted(calls.items()))}")
    return "\n".join([*lines, f"mean total {figure(mean_total)}"])


def stage_of(recipe: Recipe, name: str | None) -> Stage:
    """The named stage as it is in its first iteration, or in another: ``reinforce@100``, ``@100``.

    Without a name it is the last one.

    Raises:
        RecipeError: no stage is called that, or the iteration is no number.
    """
    known = [stage.name for stage in recipe.fields.stages]
    wanted, _, iteration = (name or "").partition("@")
    if wanted and wanted not in known:
        hint = suggest(wanted, known)
        raise RecipeError.about("unknown_stage", f"no stage is called {wanted!r}", hint)
    if not (iteration or "0").isdecimal():
        raise RecipeError(f"--stage {name}: {iteration!r} is no number of an iteration")
    index = known.index(wanted) if wanted else len(known) - 1
    return recipe.stage(index, int(iteration or 0))
