"""A page shows a thousand trajectories at most: evaluations and the latest training."""

from __future__ import annotations

from typing import Any

from tests.tracking.made import scored, turn

from agentrecipes.records import Place
from agentrecipes.tracking.report.sample import choose, kinds
from agentrecipes.tracking.tables import Tables

STAGES = ["imitate", "reinforce"]


def folder_with(root, *places: Any):
    """A run with trajectories of tasks t0, t1, … at each (place, how many)."""
    tables = Tables(root / "tables", "run")
    for place, count in places:
        tables.trajectories([scored(f"t{n}") for n in range(count)], Place(*place))
    assert tables.lost == []
    return root


def told(chosen):
    """(stage, iteration, split, mode) → tasks, of what was chosen."""
    found = {}
    for row in chosen.trajectories:
        place = (row["stage"], row["iteration"], row["split"], row["mode"])
        found.setdefault(place, []).append(row["task"])
    return found


FIRST = ("imitate", 0, "dev", "sampled")
LAST = ("reinforce", 9, "test", "sampled")
TRAINED = [("reinforce", n, "train", "sampled") for n in (7, 8)]


def test_a_small_run_is_shown_whole(tmp_path):
    run = folder_with(tmp_path, (FIRST, 2), (LAST, 3), (TRAINED[0], 2))
    notes = []
    chosen = choose(run, STAGES, most=10, notes=notes)
    assert (chosen.total, chosen.counts) == (7, {"last": 3, "first": 2, "train": 2})
    assert list(told(chosen)) == [LAST, TRAINED[0], FIRST]  # the latest first
    assert notes == []


def test_half_of_the_page_is_the_last_evaluation_a_tenth_the_first_and_the_rest_training(tmp_path):
    run = folder_with(tmp_path, (FIRST, 9), (LAST, 9), (TRAINED[0], 3), (TRAINED[1], 3))
    chosen = choose(run, STAGES, most=10, notes=[])
    assert told(chosen) == {
        LAST: ["t0", "t1", "t2", "t3", "t4"],
        TRAINED[1]: ["t0", "t1", "t2"],
        TRAINED[0]: ["t0"],
        FIRST: ["t0"],
    }
    assert chosen.total == 24


def test_splits_and_modes_of_an_evaluation_are_shown_with_the_same_tasks(tmp_path):
    greedy = (*LAST[:3], "greedy")
    run = folder_with(tmp_path, (LAST, 9), (greedy, 9), (TRAINED[0], 9))
    chosen = told(choose(run, STAGES, most=10, notes=[]))
    assert chosen[LAST] == ["t0", "t1", "t2"]
    assert chosen[greedy] == ["t0", "t1"]
    assert len(chosen[TRAINED[0]]) == 5


def test_a_run_that_only_evaluates_fills_the_page_with_evaluations(tmp_path):
    middle = ("reinforce", 5, "dev", "sampled")
    run = folder_with(tmp_path, (FIRST, 3), (middle, 3), (LAST, 3))
    chosen = choose(run, STAGES, most=8, notes=[])
    assert chosen.counts == {"last": 3, "first": 3, "other": 2}


def test_turns_come_in_their_order_with_their_tokens(tmp_path):
    tables = Tables(tmp_path / "tables", "run")
    turns = (turn((1,), (2, 3), (4,)), turn((1, 2, 3, 4), (5,)))
    tables.trajectories([scored("a", turns=turns), scored("b")], Place(*LAST))
    [first, second] = choose(tmp_path, STAGES, most=2, notes=[]).trajectories
    assert [row["action_ids"] for row in first["turns"]] == [[2, 3], [5]]
    assert first["parts"] == {"exact_match": 1.0}
    assert len(second["turns"]) == 2


def test_a_compacted_run_gives_the_same(tmp_path):
    places = [(FIRST, 2), (LAST, 3), (TRAINED[0], 2)]
    before = choose(folder_with(tmp_path / "a", *places), STAGES, most=4, notes=[])
    run = folder_with(tmp_path / "b", *places)
    for stage in STAGES:
        Tables(run / "tables", "run").compact(stage)
    assert choose(run, STAGES, most=4, notes=[]) == before


def test_a_damaged_file_is_a_note_and_the_rest_is_shown(tmp_path):
    run = folder_with(tmp_path, (FIRST, 2), (LAST, 3))
    [path] = (run / "tables" / "trajectories").glob("reinforce*")
    path.write_bytes(b"PAR1 no more")
    notes = []
    chosen = choose(run, STAGES, most=9, notes=notes)
    assert list(told(chosen)) == [FIRST]
    assert notes[0].startswith(f"trajectories/{path.name}: ")


def test_one_evaluation_is_the_last_and_not_also_the_first():
    assert kinds([LAST, TRAINED[0]]) == {LAST: "last", TRAINED[0]: "train"}
