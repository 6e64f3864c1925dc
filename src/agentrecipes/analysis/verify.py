"""The certificate of a run's stored tokens: what was checked, and all that does not hold."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentrecipes.analysis import recomputed
from agentrecipes.analysis.attempts import Attempt, Attempts, read_attempts
from agentrecipes.analysis.certificate import Finding, Reader, weighted
from agentrecipes.analysis.stored import StoredRun
from agentrecipes.environments.context import context_of
from agentrecipes.errors import AgentRecipesError, RecipeError
from agentrecipes.models.loading import Files, read_tokenizer
from agentrecipes.records import Place

if TYPE_CHECKING:
    from agentrecipes.recipe.load import Recipe
    from agentrecipes.rollout.chat import Chat

Problem = dict[str, Any]


def verify(run: StoredRun, recipe: Recipe) -> dict[str, Any]:
    """Check all that a run has stored against itself, its tokenizer and its last weights.

    Keys: run, status, ok, trajectories, tokens (as the policy saw them, each once), retokenised
    (tokens whose ids changed between turns), forks (turns whose context was edited), logp_gap_max
    (nats, over the evaluations of the final weights; None where those are not kept), logp_turns
    (turns it was measured on), problems [{check, message, stage, iteration, split, mode, task,
    attempt, turn}], notes. A run that was killed is checked as far as it went.

    Raises:
        RecipeError: its tokenizer cannot be loaded.
    """
    try:
        attempts = read_attempts(run.folder, run.stages)
    except AgentRecipesError as error:
        attempts, problems = Attempts({}), [_problem("tables", str(error))]
    else:
        problems = list(_of_tables(run, recipe, attempts))
    places, notes = _written(run, attempts.places)
    chat = _chat(run, recipe)
    retokenised = 0
    for place, own in places.items():
        stage = recipe.stage(run.stages.index(place.stage), place.iteration)
        environment = stage.environment
        reader = Reader(chat, environment.protocol, context_of(environment))
        training = place.split == "train"  # what an evaluation measures is not the rewards
        weights = {each.label: each.weight for each in stage.rewards} if training else None
        problems += _openings(place, own)
        for attempt in own:
            found, again = _findings(attempt, reader, weights)
            retokenised += again
            problems += [_at(place, attempt, finding) for finding in found]
    gap, turns, more = _log_probabilities(run, recipe, places)
    problems += more
    stored = [attempt for own in places.values() for attempt in own]
    return {
        "run": run.name,
        "status": run.status,
        "ok": not problems,
        "trajectories": len(stored),
        "tokens": sum(_tokens(attempt) for attempt in stored),
        "retokenised": retokenised,
        "forks": sum(bool(turn["fork"]) for attempt in stored for turn in attempt.turns),
        "logp_gap_max": gap,
        "logp_turns": turns,
        "problems": problems,
        "notes": notes,
    }


def _findings(
    attempt: Attempt, reader: Reader, weights: Mapping[str, float] | None, /
) -> tuple[list[Finding], int]:
    """All that does not hold of a trajectory, and how many of its tokens were tokenised again."""
    try:
        found = [*reader.findings(attempt)]
        found += weighted(attempt, weights) if weights is not None else ()
        again = reader.retokenised(attempt)
    except (TypeError, ValueError, OverflowError) as error:  # a null, or an id below zero
        return [("value", None, f"a stored value is not one that a run writes: {error}")], 0
    if again:
        found.append(("retokenised", None, f"{again} tokens were tokenised again"))
    return found, again


def _chat(run: StoredRun, recipe: Recipe) -> Chat:
    """The run's tokenizer; the recipe's where the run was killed before it left its own."""
    from agentrecipes.rollout.chat import Chat

    folder = run.folder / "model"
    if folder.is_dir():
        return Chat(read_tokenizer(Files(str(folder))))
    return Chat(recipe.fields.model.tokenizer())


def _written(
    run: StoredRun, places: Mapping[Place, Sequence[Attempt]]
) -> tuple[dict[Place, Sequence[Attempt]], list[str]]:
    """The places to check: a killed run may have written trajectories and not yet their turns."""
    kept = {place: own for place, own in places.items() if place.stage in run.stages}
    notes = []
    if run.status != "finished":
        notes.append(f"{run.name} is {run.status}: checked as far as it went")
        for place, own in list(kept.items()):
            if not any(attempt.turns for attempt in own) and any(a.row["turns"] for a in own):
                del kept[place]
                at = f"stage {place.stage}, iteration {place.iteration}, {place.split}"
                notes.append(f"{at}: left out, its turns were not written any more")
    return kept, notes


def _of_tables(run: StoredRun, recipe: Recipe, attempts: Attempts) -> Iterator[Problem]:
    """What is wrong with the tables as a whole."""
    for place in attempts.places:
        if place.stage not in run.stages:
            yield _problem("stage", f"the recipe has no stage {place.stage!r}", place)
    for row in attempts.strays:
        place = Place(row["stage"], row["iteration"], row["split"], row["mode"])
        message = "this turn belongs to no stored trajectory"
        yield _at(place, Attempt(row, ()), ("stray", row["turn"], message))
    for place, own in attempts.places.items():
        seen = set()
        for attempt in own:
            key = tuple(attempt.row[name] for name in ("task", "group_id", "attempt", "role"))
            if key in seen:
                yield _at(place, attempt, ("twice", None, "this trajectory is stored twice"))
            seen.add(key)
    if run.status == "finished":
        yield from _missing(recipe, attempts)


def _missing(recipe: Recipe, attempts: Attempts) -> Iterator[Problem]:
    """Iterations of a finished run whose training rows are gone."""
    for stage in recipe.stages:
        if stage.algorithm.needs.demonstrations:
            continue
        for iteration in range(stage.iterations or 0):
            place = Place(stage.name, iteration, "train", "sampled")
            if place not in attempts.places:
                yield _problem("missing", "no trajectory of this iteration is stored", place)


def _openings(place: Place, attempts: Sequence[Attempt]) -> Iterator[Problem]:
    """Attempts of a group are asked the same question, in the same tokens."""
    asked: dict[tuple[str, str], Attempt] = {}
    for attempt in attempts:
        if attempt.turns:
            first = asked.setdefault((attempt.row["group_id"], attempt.row["role"]), attempt)
            if first.turns[0]["prompt_ids"] != attempt.turns[0]["prompt_ids"]:
                other = first.row["attempt"]
                message = f"its opening differs from that of attempt {other} of the same group"
                yield _at(place, attempt, ("opening", 0, message))


def _log_probabilities(
    run: StoredRun, recipe: Recipe, places: Mapping[Place, Sequence[Attempt]]
) -> tuple[float | None, int, list[Problem]]:
    """The largest gap, the turns it was measured on, and those that rounding does not explain."""
    largest, turns, problems = 0.0, 0, []
    allowed = recomputed.bound(recipe)
    measured = recomputed.last_evaluations(run, places)
    try:
        for place, attempt, turn, gap in recomputed.gaps(run, recipe, measured) if measured else ():
            turns += 1
            largest = max(largest, gap)
            if not gap <= allowed:
                message = (
                    f"logp_rollout is {gap:.3g} nats from the model's; {allowed:g} is rounding"
                )
                problems.append(_at(place, attempt, ("logp", turn, message)))
    except RecipeError:
        raise
    except (AgentRecipesError, RuntimeError, IndexError) as error:  # ids that no model takes
        problems.append(_problem("logp", f"they cannot be computed again: {error}"))
        return None, turns, problems
    finite = largest if math.isfinite(largest) else None
    return (finite if turns else None), turns, problems


def _tokens(attempt: Attempt) -> int:
    """Tokens of the rows that the policy saw; a prompt that goes on is counted once."""
    count = 0
    for number, turn in enumerate(attempt.turns):
        opens = number == 0 or turn["fork"]
        names = ("prompt_ids", "action_ids", "observation_ids")[0 if opens else 1 :]
        count += sum(len(turn[name] or ()) for name in names)  # a null is a problem of its own
    return count


def _at(place: Place, attempt: Attempt, finding: Finding) -> Problem:
    check, turn, message = finding
    row = attempt.row
    named = {"task": row["task"], "attempt": row["attempt"], "turn": turn}
    return {**_problem(check, message, place), **named}


def _problem(check: str, message: str, place: Place | None = None) -> Problem:
    return {
        "check": check,
        "message": message,
        "stage": place.stage if place else None,
        "iteration": place.iteration if place else None,
        "split": place.split if place else None,
        "mode": place.mode if place else None,
        "task": None,
        "attempt": None,
        "turn": None,
    }
