"""Written transcripts become views; every broken line is named."""

import json

import pytest
from playground import House

from agentrecipes.errors import RecipeError
from agentrecipes.records import Call, Stop
from agentrecipes.rollout.score import read_transcripts
from agentrecipes.rollout.transcripts import view_of

LINE = {
    "id": "one",
    "task": {"question": "what", "golden_answers": ["yes", "ja"], "type": "chain"},
    "turns": [
        {"action": "look door !", "observation": "seen it"},
        {"action": "say yes !", "observation": None},
    ],
}


def test_a_transcript_is_read_by_the_environments_protocol(tmp_path):
    path = tmp_path / "some.jsonl"
    path.write_text(json.dumps(LINE) + "\n\n")
    [(name, view)] = read_transcripts(path, House())
    assert name == "one"
    assert view.task.gold_answers == ("yes", "ja")
    assert (view.task.question, view.task.type) == ("what", "chain")
    assert view.actions == ("look door !", "say yes !")
    assert view.observations == ("seen it", "")
    assert view.calls == ((Call("look", {"at": "door"}),), ())
    assert (view.valid, view.answer, view.stop) == ((True, True), "yes", Stop.ANSWERED)


@pytest.mark.parametrize(
    ("actions", "stop"),
    [(["look door !"], Stop.TURNS), (["look door !", "x"], Stop.INVALID), ([], Stop.VOID)],
)
def test_how_a_transcript_ended_is_read_from_its_last_action(actions, stop):
    turns = [{"action": action} for action in actions]
    [(_, view)] = read_transcripts([{**LINE, "turns": turns}], House())
    assert (view.stop, view.answer) == (stop, None)


def test_tokens_are_known_if_every_turn_says_them():
    turns = [{"action": "look door !", "tokens": 3}, {"action": "say yes !", "tokens": 2}]
    partly = [turns[0], {"action": "say yes !"}]
    views = [view_of({**LINE, "turns": each}, House()) for each in (turns, partly)]
    assert [view.tokens for view in views] == [(3, 2), None]


def test_every_broken_line_is_named(tmp_path):
    path = tmp_path / "some.jsonl"
    broken = [
        "{",
        "[]",
        '{"task": 3}',
        '{"task": {}, "turns": {}}',
        '{"task": {}, "turns": [{"action": 3}]}',
        '{"task": {"golden_answers": "x"}, "turns": []}',
        '{"task": {}, "turns": [{"action": "x", "observation": 1}]}',
        '{"task": {}, "turns": [{"action": "x", "tokens": true}]}',
    ]
    path.write_text("\n".join([json.dumps(LINE), *broken]))
    with pytest.raises(RecipeError) as caught:
        read_transcripts(path, House())
    problems = sorted(caught.value.problems, key=lambda problem: problem.line)
    assert [problem.line for problem in problems] == list(range(2, 10))
    said = ["not JSON", "an object with id", "'task'", "'turns' must", "turns[0]", "golden", "null"]
    said.append("'turns[0].tokens' must be a whole number")
    for problem, word in zip(problems, said, strict=True):
        assert word in problem.message
        assert problem.file == str(path)


def test_a_file_that_is_not_there_is_a_recipe_error(tmp_path):
    with pytest.raises(RecipeError, match="cannot be read"):
        read_transcripts(tmp_path / "none.jsonl", House())
