"""``score``: a recipe's rewards on written transcripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentrecipes.cli.arguments import Json, Parts, Profile, open_recipe, split_words
from agentrecipes.cli.output import emit_json, note, table
from agentrecipes.cli.play import StageName, stage_of
from agentrecipes.errors import RecipeError
from agentrecipes.records import Judgement

if TYPE_CHECKING:
    from agentrecipes.rewards.protocol import View

Words = Annotated[
    list[str],
    typer.Argument(
        metavar="RECIPE FILE [KEY=VALUE]",
        help="A recipe; a file with one transcript a line; values that replace the recipe's.",
        show_default=False,
    ),
]


def score(
    words: Words,
    stage: StageName = None,
    profile: Profile = None,
    parts: Parts = None,
    as_json: Json = False,
) -> None:
    """Score written transcripts with a recipe's rewards."""
    split = split_words(words)
    if len(split.names) != 2:
        raise RecipeError("score takes a recipe and a file of transcripts, one JSON object a line")
    recipe_name, file = split.names
    recipe = open_recipe([recipe_name, *split.overrides], profile, parts=parts)
    chosen = stage_of(recipe, stage)
    from agentrecipes.rollout.score import read_transcripts, score_in

    told: list[dict[str, Any]] = []
    read = read_transcripts(Path(file), chosen.environment)
    found = score_in(chosen, [view for _, view in read])
    for (name, view), scores in zip(read, found, strict=True):
        for problem in [*scores.problems, *_without_total(scores.total, view)]:
            note(f"warning: {name}: {problem}")
        told.append(
            {
                "id": name,
                "parts": scores.parts,
                "per_turn": list(scores.per_turn),
                "total": scores.total,
                **_judgements(scores.judgements),
            }
        )
    if as_json:
        emit_json({"scores": told})
        return
    labels = [entry.label for entry in chosen.rewards]
    rows = ([one["id"], one["total"], *map(one["parts"].get, labels)] for one in told)
    typer.echo(table(("id", "total", *labels), rows))


def _without_total(total: float | None, view: View) -> Iterator[str]:
    """What a transcript without a total may lack."""
    if total is None and view.tokens is None:
        yield "no total. Rewards that count tokens need `tokens` in every turn of a transcript."


def _judgements(said: Sequence[Judgement]) -> dict[str, Any]:
    """What judges replied, where one was asked."""
    return {"judgements": [asdict(each) for each in said]} if said else {}
