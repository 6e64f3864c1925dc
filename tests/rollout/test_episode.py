"""One task → one Trajectory: what is recorded, and what ends it."""

import pytest
from playground import BROKEN, CHATML, TASK, House, Orders, play_texts, tokenizer

from agentrecipes.environments.protocol import OnInvalid, Outcome
from agentrecipes.errors import TaskFailed
from agentrecipes.records import Message, Source, Stop
from agentrecipes.rollout.chat import Chat
from agentrecipes.rollout.play import play, texts


def picture(trajectory):
    """Rows of ids, sampled ones in brackets; a turn that does not extend the last starts a row."""
    rows, seen = [], ()
    for turn in trajectory.turns:
        if not rows or turn.prompt[: len(seen)] != seen:
            rows.append([str(one) for one in turn.prompt])
        else:
            rows[-1] += [str(one) for one in turn.prompt[len(seen) :]]
        rows[-1] += [f"[{one}]" for one in turn.action]
        seen = turn.prompt + turn.action
    return [" ".join(row) for row in rows]


# Special tokens: end 1, user 2, assistant 3, tool 5; then 256 bytes; then the words in their order:
# look 262, say 263, yes 264, no 265, door 266, wall 267, ! 268, seen 269, it 270, go 271, on 272,
# ask 273.
@pytest.mark.parametrize(
    ("role", "stop", "expected"),
    [
        # "ask yes", [look door !] seen it [say yes !]
        ("inline", (" !",), "2 273 264 3 [262] [266] [268] 269 270 [263] [264] [268]"),
        # stopped by a string: the template closes the message
        ("tool", (" !",), "2 273 264 3 [262] [266] [268] 1 5 269 270 3 [263] [264] [268]"),
        # stopped by the end token: the policy closed it
        ("user", (), "2 273 264 3 [262] [266] [268] [1] 2 269 270 3 [263] [264] [268] [1]"),
    ],
)
def test_only_sampled_tokens_are_in_brackets(role, stop, expected):
    trajectory, _ = play_texts("look door !", "say yes !", house=House(Orders(role, stop)))
    assert picture(trajectory) == [expected]
    assert (trajectory.stop, trajectory.answer) == (Stop.ANSWERED, "yes")


def test_a_hint_after_an_unreadable_action_is_an_observation_like_any_other():
    # "go", ended by the policy, so that the inline hint becomes a user's message
    trajectory, _ = play_texts("go", "say yes !")
    assert picture(trajectory) == ["2 273 264 3 [271] [1] 2 271 272 3 [263] [264] [268]"]


@pytest.mark.parametrize("template", [None, CHATML], ids=["own", "chatml"])
@pytest.mark.parametrize("role", ["inline", "user", "tool"])
@pytest.mark.parametrize("stop", [(" !",), ()], ids=["stop", "end"])
def test_every_action_is_what_was_sampled_and_every_prompt_extends_the_last(template, role, stop):
    house = House(Orders(role, stop))
    written = ("look door !", "look é <|user|> !", "nonsense", "say yes !")
    trajectory, engine = play_texts(*written, house=house, template=template)
    assert [turn.action_text for turn in trajectory.turns] == list(written)
    assert [turn.prompt for turn in trajectory.turns] == [r.ids for r in engine.requests]
    chat = Chat(tokenizer(template))
    sampled = [chat.action(text, close=not stop or "!" not in text) for text in written]
    assert [turn.action for turn in trajectory.turns] == sampled
    for turn, following in zip(trajectory.turns, trajectory.turns[1:], strict=False):
        assert following.prompt == turn.prompt + turn.action + turn.observation
        middle = (Source.POLICY,) * len(turn.action)
        assert following.prompt_sources == (turn.prompt_sources + middle + turn.observation_sources)
    assert set(trajectory.turns[0].prompt_sources) == {Source.PROMPT}


def test_keys_name_task_attempt_turn_and_refill():
    _, engine = play_texts("look door !", "say yes !")
    assert [request.key for request in engine.requests] == [
        (7, "stage", 0, "rollout", "t", 0, 0, 0),
        (7, "stage", 0, "rollout", "t", 0, 1, 0),
    ]


def test_an_edited_context_starts_a_new_row():
    house = House(outcomes={"door": Outcome(context=(Message("user", "go on"),))})
    trajectory, _ = play_texts("look door !", "say yes !", house=house)
    assert picture(trajectory) == [
        "2 273 264 3 [262] [266] [268]",
        "2 271 272 3 [263] [264] [268]",
    ]
    assert trajectory.turns[0].observation == ()
    assert set(trajectory.turns[1].prompt_sources) == {Source.PROMPT}


MIXED = ["go on", "seen it"]


@pytest.mark.parametrize(
    ("said", "rules", "stop", "shown"),
    [
        # the limit of 2 is answered, the third ends it
        (["a", "b", "c", "d"], OnInvalid(), Stop.INVALID, ["go on", "go on", ""]),
        (["a", "b"], OnInvalid(limit=0), Stop.INVALID, [""]),
        (["a", "b"], OnInvalid(reply="stop"), Stop.INVALID, [""]),
        (["a", "say yes !"], OnInvalid(reply="error"), Stop.ANSWERED, ["what is 'a'", ""]),
        # an action that can be read does not reset the count
        (["a", "look yes !", "b", "c"], OnInvalid(), Stop.INVALID, [*MIXED, "go on", ""]),
    ],
)  # fmt: skip
def test_invalid_actions_are_answered_so_many_times(said, rules, stop, shown):
    house = House(on_invalid=rules, max_turns=9)
    trajectory, _ = play_texts(*said, house=house)
    assert trajectory.stop == stop
    assert [turn.observation_text for turn in trajectory.turns] == shown
    assert [turn.valid for turn in trajectory.turns] == [
        text.endswith(" !") for text in said[: len(shown)]
    ]


def test_after_the_last_turn_the_episode_is_over_without_an_answer():
    trajectory, engine = play_texts("look door !", "look wall !", house=House(max_turns=2))
    assert (trajectory.stop, trajectory.answer, len(trajectory.turns)) == (Stop.TURNS, None, 2)
    assert trajectory.turns[-1].observation == ()
    assert len(engine.requests) == 2


@pytest.mark.parametrize(
    ("place", "said"), [("wall", "the wall fell"), ("door", "KeyError: 'door'")]
)
def test_a_tool_that_fails_is_data(place, said):
    house = House(outcomes=BROKEN)
    trajectory, _ = play_texts(f"look {place} !", house=house)
    assert trajectory.stop == Stop.TOOL_ERROR
    assert said in trajectory.error
    assert house.opened[0].closed


def test_a_turn_that_is_cut_before_it_is_an_action_ends_the_trajectory():
    trajectory, _ = play_texts("look door door door !", tokens_per_turn=3)
    assert (trajectory.stop, trajectory.turns[0].valid) == (Stop.TOKENS, False)
    assert picture(trajectory) == ["2 273 264 3 [262] [266] [266]"]


def test_a_turn_that_is_cut_right_after_its_action_counts():
    house = House(Orders(stop=()))  # the cut falls on the end token
    trajectory, _ = play_texts("look door !", "say yes !", house=house, tokens_per_turn=3)
    assert picture(trajectory) == ["2 273 264 3 [262] [266] [268] 269 270 [263] [264] [268]"]
    assert (trajectory.stop, trajectory.answer) == (Stop.ANSWERED, "yes")


@pytest.mark.parametrize(
    ("tokens", "turns", "asked"),
    [
        (12, 2, [8, 3]),  # 4 prompt + 3 sampled + 2 seen = 9 before the second turn, and 3 are left
        (11, 2, [7, 2]),  # the second turn is cut
        (9, 1, [5]),  # no room for a second turn
    ],
)
def test_the_tokens_of_a_trajectory_include_prompt_and_observations(tokens, turns, asked):
    trajectory, engine = play_texts("look door !", "look door !", "say yes !", tokens=tokens)
    assert (trajectory.stop, len(trajectory.turns)) == (Stop.TOKENS, turns)
    assert [request.max_tokens for request in engine.requests] == asked


def test_a_prompt_that_fills_the_budget_is_void():
    trajectory, engine = play_texts("say yes !", tokens=4)
    assert (trajectory.stop, trajectory.turns, engine.requests) == (Stop.VOID, (), [])
    assert trajectory.task == TASK


def test_an_empty_reply_is_an_action_that_could_not_be_read():
    trajectory, _ = play_texts("", "say yes !")
    assert [turn.valid for turn in trajectory.turns] == [False, True]
    assert len(trajectory.turns[0].action) == 1  # the end token
    assert trajectory.turns[0].action_text == ""


def test_an_episode_reports_its_own_turn_rewards():
    house = House(outcomes={"door": Outcome(observation="seen", reward=0.25)})
    trajectory, _ = play_texts("look door !", "say yes !", house=house)
    assert [turn.reward for turn in trajectory.turns] == [0.25, 0.0]


class Locked(House):
    """It cannot be opened, or it cannot be closed."""

    def open(self, task, seed):
        if "open" in self.outcomes:
            raise self.outcomes["open"]
        room = super().open(task, seed)

        async def fail() -> None:
            raise self.outcomes["close"]

        room.close = fail
        return room


@pytest.mark.parametrize(("when", "turns"), [("open", 0), ("close", 1)])
def test_a_task_that_cannot_be_opened_or_closed_is_data(when, turns):
    house = Locked(outcomes={when: TaskFailed("the door is locked")})
    trajectory, _ = play_texts("say yes !", house=house)
    assert (trajectory.stop, trajectory.error) == (Stop.TOOL_ERROR, "the door is locked")
    assert (trajectory.task, len(trajectory.turns)) == (TASK, turns)
    played = play(house, TASK, agent=texts(["say yes !"]))
    assert (played.stop, played.error, played.turns) == (trajectory.stop, trajectory.error, turns)
