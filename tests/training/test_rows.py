"""Trajectories become rows of labelled tokens."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from makers import trajectory, turn

from agentrecipes.records import Source
from agentrecipes.testing.packing_door import evaluate_packing
from agentrecipes.training.rows import rows, trajectory_rows


def test_an_observation_joins_the_row_untrained():
    [only] = rows((turn([1, 2], [7, 8], [5]), turn([1, 2, 7, 8, 5], [9])))
    assert only.picture() == "1 2 [7] [8] 5 [9]"


def test_a_prompt_that_brings_the_observation_itself_gives_the_same_row():
    [only] = rows((turn([1, 2], [7, 8]), turn([1, 2, 7, 8, 5], [9])))
    assert only.picture() == "1 2 [7] [8] 5 [9]"


def test_a_rewritten_history_starts_a_second_row():
    first, second = rows((turn([1, 2], [7], [5]), turn([3, 4], [9])))
    assert (first.picture(), second.picture()) == ("1 2 [7] 5", "3 4 [9]")


def test_a_rewritten_history_as_long_as_the_row_starts_a_second_row_too():
    first, second = rows((turn([1, 2], [7], [5]), turn([1, 3, 7, 5, 6], [9])))
    assert (first.picture(), second.picture()) == ("1 2 [7] 5", "1 3 7 5 6 [9]")


def test_a_shortened_history_starts_a_second_row():
    first, second = rows((turn([1, 2], [7], [5, 6]), turn([1, 2, 7, 5], [9])))
    assert (first.picture(), second.picture()) == ("1 2 [7] 5 6", "1 2 7 5 [9]")


def test_the_last_observation_stays_on_record():
    [only] = rows((turn([1], [7], [5]),))
    assert only.picture() == "1 [7] 5"


def test_each_action_token_keeps_its_own_log_probability():
    # turn() gives -0.1 and -0.2 to the first action, -0.1 to the second.
    [only] = rows((turn([1], [7, 8], [5]), turn([1, 7, 8, 5], [9])))
    assert [round(float(x), 6) for x in only.logp_rollout] == [0.0, -0.1, -0.2, 0.0, -0.1]


def test_a_token_knows_its_turn_and_its_source():
    [only] = rows((turn([1], [7], [5]), turn([1, 7, 5], [9])))
    assert only.turn_index.tolist() == [0, 0, 0, 1]
    wanted = [Source.PROMPT, Source.POLICY, Source.OBSERVATION, Source.POLICY]
    assert only.sources.tolist() == wanted
    assert only.weight.tolist() == [0.0, 1.0, 0.0, 1.0]  # only what is trained on is scored


def test_rows_of_a_trajectory_stand_together_under_its_number():
    forked = trajectory(turn([1], [7]), turn([2], [8]))
    plain = trajectory(turn([3], [9]))
    assert [row.trajectory for row in trajectory_rows([forked, plain])] == [0, 0, 1]


def test_a_trajectory_without_turns_has_no_rows():
    assert rows(()) == []


tokens = st.lists(st.integers(0, 9), min_size=1, max_size=4)


@given(tokens, st.lists(st.tuples(tokens, tokens, st.booleans()), min_size=1, max_size=5))
def test_every_sampled_token_is_trained_on_once_and_nothing_else_is(start, steps):
    turns, prompt = [], list(start)
    for action, observation, rewrite in steps:
        turns.append(turn(prompt, action, observation))
        prompt = [99] if rewrite else [*prompt, *action, *observation]
    made = rows(tuple(turns))
    trained = [int(t) for row in made for t in row.ids[row.action_mask]]
    assert trained == [token for action, _, _ in steps for token in action]
    rewritten = sum(rewrite for _, _, rewrite in steps[:-1])
    assert len(made) == 1 + rewritten


def test_the_door_for_outside_checks_speaks_plain_lists():
    [only] = evaluate_packing(
        [
            {"prompt": [1, 2], "action": [7, 8], "observation": [5]},
            {"prompt": [1, 2, 7, 8, 5], "action": [9], "observation": []},
        ]
    )
    assert only["ids"] == [1, 2, 7, 8, 5, 9]
    assert only["sources"] == ["prompt", "prompt", "policy", "policy", "observation", "policy"]
    assert only["turn_index"] == [0, 0, 0, 0, 0, 1]
