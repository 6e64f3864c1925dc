from __future__ import annotations

import copy
from dataclasses import replace

import pytest
from tests.analysis.conftest import changed

from agentrecipes.analysis.attempts import Attempt, read_attempts
from agentrecipes.analysis.certificate import Reader, weighted
from agentrecipes.analysis.stored import open_run
from agentrecipes.analysis.verify import verify
from agentrecipes.cli.run import recipe_of
from agentrecipes.models.loading import Files, read_tokenizer
from agentrecipes.models.words import byte_letters
from agentrecipes.rollout.chat import Chat


def certificate(folder):
    return verify(open_run(folder), recipe_of(folder))


def checks(found) -> set[str]:
    return {problem["check"] for problem in found["problems"]}


@pytest.fixture(scope="module")
def reader(runs):
    """How the small run's tokens are read."""
    chat = Chat(read_tokenizer(Files(str(runs / "grpo" / "model"))))
    return Reader(chat, recipe_of(runs / "grpo").stages[-1].environment.protocol)


@pytest.fixture(scope="module")
def attempts(runs):
    """Every trajectory that the small run has stored."""
    places = read_attempts(runs / "grpo", ("imitate", "reinforce")).places
    return [attempt for own in places.values() for attempt in own]


# Finished runs.


@pytest.mark.parametrize("name", ["grpo", "patchy", "ppo"])
def test_a_run_is_certified_and_its_log_probabilities_are_the_model_s(runs, name):
    found = certificate(runs / name)
    assert (found["ok"], found["problems"], found["notes"]) == (True, [], [])
    # 3 iterations of 16, and 3 tasks in 2 modes: before both stages, and at the end on dev and test
    assert found["trajectories"] == 48 + 2 * 3 * 4
    assert (found["retokenised"], found["forks"]) == (0, 0)
    assert found["logp_turns"] >= 12  # at least one turn for each of the last evaluations
    assert 0.0 < found["logp_gap_max"] < 1e-4
    tokens = sum(
        len(attempt.turns[0]["prompt_ids"])
        + attempt.row["policy_tokens"]
        + attempt.row["observation_tokens"]
        for own in read_attempts(runs / name, ()).places.values()
        for attempt in own
    )
    assert found["tokens"] == tokens > 1000


# One trajectory at a time.


def spoilt(attempt, values, *, turn=None):
    """The attempt with values of its row, or of one of its turns, replaced."""
    turns = [dict(each) for each in attempt.turns]
    if turn is None:
        return Attempt({**attempt.row, **values}, tuple(turns))
    turns[turn].update(values)
    return Attempt(attempt.row, tuple(turns))


def several(attempts):
    """A trajectory of two turns or more; all but the last have an observation."""
    return next(each for each in attempts if len(each.turns) > 1)


def test_nothing_is_found_in_what_the_run_has_written(reader, attempts):
    assert [finding for each in attempts for finding in reader.findings(each)] == []
    assert sum(reader.retokenised(each) for each in attempts) == 0
    assert {len(each.turns) > 1 for each in attempts} == {True, False}


def bumped(ids):
    return [*ids[:-1], ids[-1] + 1]


@pytest.mark.parametrize(
    ("column", "change", "expected"),
    [
        ("action_ids", lambda ids: [ids[0] + 1, *ids[1:]], {("text", 0)}),
        (
            "action_ids",
            lambda ids: [ids[0], *ids[2:]],
            {("text", 0), ("logp", 0), ("counts", None)},
        ),
        ("action_text", lambda text: text + " ", {("text", 0)}),
        ("prompt_ids", bumped, {("prefix", 1)}),
        ("observation_ids", bumped, {("prefix", 1), ("sources", 0)}),
        ("observation_text", lambda text: text + "!", {("sources", 0)}),
        ("logp_rollout", lambda logp: [0.5, *logp[1:]], {("logp", 0)}),
        ("logp_rollout", lambda logp: [float("nan"), *logp[1:]], {("logp", 0)}),
        ("logp_rollout", lambda logp: logp[1:], {("logp", 0)}),
        ("calls", lambda calls: '[{"tool": "rm", "arguments": {}}]', {("calls", 0)}),
        ("valid", lambda valid: not valid, {("valid", 0)}),
        ("turn_total", lambda total: total + 0.5, {("total", None)}),
        ("turn", lambda turn: turn + 7, {("turns", None)}),
        ("policy_version", lambda version: version + 1, {("version", None)}),
    ],
)
def test_a_changed_value_of_a_turn_is_named(reader, attempts, column, change, expected):
    attempt = several(attempts)
    number = int(column == "prompt_ids")  # the opening of a trajectory follows nothing
    value = change(copy.deepcopy(attempt.turns[number][column]))
    found = reader.findings(spoilt(attempt, {column: value}, turn=number))
    assert expected <= {(check, turn) for check, turn, _ in found}


def test_a_turn_that_claims_to_fork_and_does_not_is_named(reader, attempts):
    attempt = several(attempts)
    opening = attempt.turns[0]
    whole = [*opening["prompt_ids"], *opening["action_ids"], *attempt.turns[1]["prompt_ids"]]
    found = reader.findings(spoilt(attempt, {"fork": True, "prompt_ids": whole}, turn=1))
    assert [(check, turn) for check, turn, _ in found] == [("prefix", 1)]
    found = reader.findings(spoilt(attempt, {"fork": True}, turn=0))
    assert [(check, turn) for check, turn, _ in found] == [("prefix", 0)]


@pytest.mark.parametrize(
    ("row", "check"),
    [
        ({"policy_tokens": 1}, "counts"),
        ({"observation_tokens": 10_000}, "counts"),
        ({"total": 0.75}, "total"),
        ({"total": None}, "total"),
        ({"turns": 9}, "turns"),
        ({"policy_version": -1}, "version"),
        ({"stop": "bored"}, "stop"),
    ],
)
def test_a_changed_value_of_a_trajectory_is_named(reader, attempts, row, check):
    found = reader.findings(spoilt(several(attempts), row))
    assert [name for name, _, _ in found] == [check]


def test_the_total_is_the_weighted_sum_of_the_parts():
    def found(parts, total) -> list[str]:
        row = {"parts": list(parts.items()), "total": total}
        return [check for check, _, _ in weighted(Attempt(row, ()), {"x": 2.0, "y": -1.0})]

    assert found({"x": 3.0, "y": 1.0}, 5.0) == []  # 2 · 3 - 1
    assert found({"x": 3.0, "y": None}, None) == []
    assert found({"x": 3.0, "y": 1.0}, 4.0) == ["parts"]
    assert found({"x": 3.0, "y": None}, 6.0) == ["parts"]
    assert found({"x": 2.5}, 5.0) == ["parts"]


# Forks.


def two_turns(reader, action, second):
    """A trajectory whose second prompt is `second`, after an opening and `action`."""
    opening = list(reader.chat.encode("ask"))
    places = [(0, opening, False, action), (1, second, True, list(reader.chat.encode("end")))]
    names = ("turn", "prompt_ids", "fork", "action_ids")
    rows = [dict(zip(names, place, strict=True)) for place in places]
    return Attempt({}, tuple({**row, "observation_ids": []} for row in rows))


def test_a_prompt_that_says_the_same_in_other_ids_was_tokenised_again(reader):
    word = "zqx"
    letters = byte_letters()
    encode = reader.chat.tokenizer.convert_tokens_to_ids
    split = [encode(letters[byte]) for byte in word.encode()]
    [known] = reader.chat.encode(" invalid")
    spelt = [encode(letters[byte]) for byte in b" invalid"]
    assert reader.chat.decode(spelt) == reader.chat.decode([known])
    opening = list(reader.chat.encode("ask"))
    # The policy spelt a word in 8 bytes; the next prompt has it as one token.
    again = two_turns(reader, [*split, *spelt], [*opening, *split, known])
    assert reader.retokenised(again) == len(spelt) == 8
    # A context that was edited says something else: nothing was tokenised again.
    assert reader.retokenised(two_turns(reader, [*split, *spelt], [*split, known])) == 0


# Tables as a whole.


def test_log_probabilities_that_the_last_weights_do_not_give_are_named(copied):
    folder = copied("grpo")
    changes = []

    def change(rows) -> None:
        for row in rows:
            if (row["split"], row["mode"], row["turn"]) == ("test", "sampled", 0) and not changes:
                row["logp_rollout"] = [row["logp_rollout"][0] - 0.25, *row["logp_rollout"][1:]]
                changes.append((row["task"], row["attempt"]))

    changed(folder, "turns", change)
    found = certificate(folder)
    [problem] = found["problems"]
    assert not found["ok"]
    assert (problem["check"], problem["split"], problem["turn"]) == ("logp", "test", 0)
    assert [(problem["task"], problem["attempt"])] == changes
    assert found["logp_gap_max"] == pytest.approx(0.25, abs=1e-4)


def first_row(split):
    return lambda rows: next(n for n, row in enumerate(rows) if row["split"] == split)


@pytest.mark.parametrize(
    ("table", "change", "check"),
    [
        ("turns", lambda rows: rows.pop(), "turns"),
        ("trajectories", lambda rows: rows.pop(), "stray"),
        ("trajectories", lambda rows: rows.append(rows[0]), "twice"),
        ("trajectories", lambda rows: rows[0].update(stage="other"), "stage"),
        ("trajectories", lambda rows: rows[0].update(parts=[("spread", 0.5)]), "parts"),
        ("turns", lambda rows: rows[0].update(prompt_ids=[*rows[0]["prompt_ids"], 9]), "opening"),
        ("turns", lambda rows: rows[0].update(action_ids=None), "value"),
        ("turns", lambda rows: rows[0].update(action_ids=[-5]), "value"),
    ],
)
def test_a_spoilt_table_is_named(copied, table, change, check):
    folder = copied("grpo")

    def training(rows) -> None:
        if any(row["split"] == "train" for row in rows):
            rows.sort(key=lambda row: row["split"] == "train", reverse=True)
            change(rows)

    changed(folder, table, training)
    found = certificate(folder)
    assert check in checks(found)
    assert not found["ok"]


def test_an_iteration_whose_rows_are_gone_is_named(copied):
    folder = copied("grpo")
    for table in ("turns", "trajectories"):
        changed(folder, table, without_iteration_1)
    found = certificate(folder)
    [problem] = found["problems"]
    assert (problem["check"], problem["stage"], problem["iteration"]) == ("missing", "reinforce", 1)


def without_iteration_1(rows) -> None:
    rows[:] = [row for row in rows if (row["split"], row["iteration"]) != ("train", 1)]


def test_a_damaged_file_is_named(copied):
    folder = copied("grpo")
    path = next((folder / "tables" / "turns").glob("*.parquet"))
    path.write_bytes(path.read_bytes()[:-20])
    found = certificate(folder)
    assert checks(found) == {"tables"}
    assert path.name in found["problems"][0]["message"]


# Runs that were killed.


def test_a_killed_run_is_certified_as_far_as_it_went(copied):
    folder = copied("grpo")
    (folder / "summary.json").unlink()
    (folder / "model").rename(folder / "elsewhere")
    changed(folder, "turns", without_iteration_1)  # its trajectories were written before the end
    found = certificate(folder)
    assert (found["ok"], found["status"]) == (True, "unfinished")
    assert (found["logp_gap_max"], found["logp_turns"]) == (None, 0)
    assert found["trajectories"] == 32 + 24
    assert "iteration 1, train: left out" in found["notes"][1]


def test_weights_that_may_have_gone_on_are_not_compared_with(copied):
    folder = copied("grpo")
    run = replace(open_run(folder), status="interrupted")
    assert verify(run, recipe_of(folder))["logp_gap_max"] is None
