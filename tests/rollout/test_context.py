"""Episodes whose context is edited: what the policy is shown, and what becomes a row."""

from __future__ import annotations

import pytest
from playground import CHATML, House, Orders, play_texts, tokenizer

from agentrecipes.environments.context import Context
from agentrecipes.environments.halting import Halting
from agentrecipes.environments.protocol import Outcome
from agentrecipes.records import Action, Call, Message, Source, Stop
from agentrecipes.rollout.chat import Chat
from agentrecipes.training.rows import rows


class Remembering(Orders):
    """``go !`` takes back, ``ask … !`` sums up; look and say act."""

    memory = True

    def parse(self, text):
        verb, _, rest = text.removesuffix(" !").partition(" ")
        if verb in ("go", "ask"):
            tool = "backtrack" if verb == "go" else "summary"
            return Action(calls=(Call(tool, {"text": rest} if rest else {}),))
        return super().parse(text)

    def render(self, results):
        return results[0].text


class Sliding(House):
    """A house with a context policy, and a rule for its answers."""

    def __init__(self, policy, protocol=None, halting=None, *, turns=9, **fields: object) -> None:
        super().__init__(protocol or Remembering(), max_turns=turns, **fields)
        self.context = policy
        self.halting = halting or Halting()


STACK = Context(policy="stack", note="it")
LOOK, WALL, UNDO = "look door !", "look wall !", "go !"


def pictures(trajectory):
    return [row.picture() for row in rows(trajectory.turns)]


# end 1, user 2, assistant 3; look 262, say 263, yes 264, no 265, door 266, wall 267, ! 268,
# seen 269, it 270, go 271, on 272, ask 273. "it" without a blank is the bytes 105 + 6 and 116 + 6.
NOTE = "111 122"
SEEN = "269 270"


def test_a_backtrack_starts_a_row_without_the_turn_that_it_takes_back():
    trajectory, _ = play_texts(LOOK, WALL, UNDO, "say yes !", house=Sliding(STACK))
    opening, first = "2 273 264 3", f"262 266 268 {SEEN}"
    assert pictures(trajectory) == [
        # "ask yes" [look door !] seen it [look wall !] seen it [go !] it: as it was sampled
        f"{opening} [262] [266] [268] {SEEN} [262] [267] [268] {SEEN} [271] [268] {NOTE}",
        # the same without the wall; what was sampled above is not trained on again
        f"{opening} {first} 271 268 {NOTE} [263] [264] [268]",
    ]
    assert trajectory.policy_tokens == sum(row.action_mask.sum() for row in rows(trajectory.turns))


def test_a_summary_stands_for_all_turns_before_it_and_rows_go_on_after_it():
    said = (LOOK, WALL, "ask yes !", LOOK, "say yes !")
    trajectory, _ = play_texts(*said, house=Sliding(STACK))
    opening = "2 273 264 3"
    assert pictures(trajectory)[1] == (
        f"{opening} 273 264 268 [262] [266] [268] {SEEN} [263] [264] [268]"
    )
    assert len(pictures(trajectory)) == 2


def test_a_summary_of_nothing_and_a_backtrack_of_nothing_go_on_in_the_row():
    trajectory, _ = play_texts("ask yes !", "say yes !", house=Sliding(STACK))
    assert len(pictures(trajectory)) == 1
    trajectory, _ = play_texts(UNDO, "say yes !", house=Sliding(STACK))
    assert len(pictures(trajectory)) == 1
    assert trajectory.turns[0].observation_text == "There is nothing to take back."


def test_a_window_slides_over_the_turns():
    house = Sliding(Context(policy="window", turns=1), Orders())
    trajectory, _ = play_texts(LOOK, WALL, LOOK, "say yes !", house=house)
    door, wall, opening = f"262 266 268 {SEEN}", f"262 267 268 {SEEN}", "2 273 264 3"
    assert pictures(trajectory) == [
        f"{opening} [262] [266] [268] {SEEN} [262] [267] [268] {SEEN}",
        f"{opening} {wall} [262] [266] [268] {SEEN}",
        f"{opening} {door} [263] [264] [268]",
    ]


@pytest.mark.parametrize("template", [None, CHATML], ids=["own", "chatml"])
@pytest.mark.parametrize("role", ["inline", "user", "tool"])
@pytest.mark.parametrize("stop", [(" !",), ()], ids=["stop", "end"])
def test_an_edited_context_is_well_formed_in_every_template(role, stop, template):
    house = Sliding(STACK, Remembering(role, stop))
    said = ("look é !", LOOK, UNDO, "say yes !")
    trajectory, engine = play_texts(*said, house=house, template=template)
    chat = Chat(tokenizer(template))
    assert engine.requests[3].ids == trajectory.turns[3].prompt
    assert set(trajectory.turns[3].prompt_sources) == {Source.PROMPT}
    first, undo = trajectory.turns[0], trajectory.turns[2]
    kept = (*first.action, *first.observation, *undo.action, *undo.observation)
    assert trajectory.turns[3].prompt == (*first.prompt, *kept)
    # It says what it would say if the turn that was taken back had never been.
    note = chat.observation("it", role, ended=not stop)[0]
    assert undo.observation == note
    assert "door" not in chat.decode(trajectory.turns[3].prompt)


def test_an_answer_that_does_not_count_is_a_turn_like_any_other():
    house = Sliding(Context(), halting=Halting(least_actions=1, note="go on"))
    trajectory, _ = play_texts("say no !", LOOK, "say yes !", house=house)
    assert (trajectory.stop, trajectory.answer) == (Stop.ANSWERED, "yes")
    assert [turn.observation_text for turn in trajectory.turns] == ["go on", "seen it", ""]
    assert len(pictures(trajectory)) == 1


def test_the_rule_knows_how_sure_the_sampler_was():
    # The scripted engine is always sure: log-probability 0, a perplexity of 1.
    for bound, answer in ((1.0, "yes"), (1.5, "no")):
        rule = Halting(uncertainty=bound, state="perplexity", note="go on")
        house = Sliding(Context(), halting=rule, turns=2)
        trajectory, _ = play_texts("say no !", "say yes !", house=house)  # the last turn counts
        assert (trajectory.stop, trajectory.answer) == (Stop.ANSWERED, answer)


def test_a_whole_new_context_beside_a_policy_is_a_failure_of_the_environment():
    house = Sliding(STACK, outcomes={"door": Outcome(context=(Message("user", "go on"),))})
    trajectory, _ = play_texts(LOOK, house=house)
    assert trajectory.stop is Stop.TOOL_ERROR
    assert "whole new contexts" in trajectory.error
