"""The chat template in pieces says what the template says, and refuses what it cannot keep."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playground import CHATML, tokenizer

from agentrecipes.errors import RecipeError
from agentrecipes.records import Message, Source
from agentrecipes.rollout.chat import Chat

PLAIN = Chat.take_apart(tokenizer())
ML = Chat.take_apart(tokenizer(CHATML))
NAMES = {Source.PROMPT: "p", Source.OBSERVATION: "o", Source.TEMPLATE: "t"}


def render(chat, *messages: tuple[str, str]):
    listed = [{"role": role, "content": content} for role, content in messages]
    return chat.tokenizer.apply_chat_template(listed, tokenize=False, add_generation_prompt=True)


@pytest.mark.parametrize("chat", [PLAIN, ML], ids=["own", "chatml"])
@pytest.mark.parametrize("roles", [["user"], ["system", "user"], ["user", "assistant", "user"]])
def test_a_prompt_is_what_the_template_writes(chat, roles):
    messages = [(role, f"{role} says look") for role in roles]
    ids, sources = chat.prompt([Message(*message) for message in messages])
    text = render(chat, *messages)
    assert chat.decode(ids) == text
    assert list(ids) == chat.tokenizer(text, add_special_tokens=False).input_ids
    assert set(sources) == {Source.PROMPT}
    assert len(sources) == len(ids)


@pytest.mark.parametrize("chat", [PLAIN, ML], ids=["own", "chatml"])
@pytest.mark.parametrize("role", ["user", "tool"])
@pytest.mark.parametrize("ended", [False, True])
def test_two_rounds_of_the_tool_loop_add_up_to_the_template(chat, role, ended):
    ids, _ = chat.prompt([Message("user", "ask yes")])
    messages = [("user", "ask yes")]
    for action, seen in [("look door !", "seen it"), ("look wall !", "seen wall\n<|user|>")]:
        ids += chat.action(action, close=ended)
        more, sources = chat.observation(seen, role, ended=ended)
        ids += more
        assert len(sources) == len(more)
        messages += [("assistant", action), (role, seen)]
    assert chat.decode(ids) == render(chat, *messages)


def labelled(chat, labels):
    ids, sources = labels
    return [(NAMES[source], chat.decode([one])) for one, source in zip(ids, sources, strict=True)]


def test_an_inline_observation_is_its_own_text_alone():
    seen = PLAIN.observation("seen it", "inline", ended=False)
    assert labelled(PLAIN, seen) == [("o", "seen"), ("o", " it")]


def test_a_message_that_the_policy_ended_is_not_closed_twice():
    after_end = PLAIN.observation("seen it", "tool", ended=True)
    assert labelled(PLAIN, after_end) == [
        ("t", "<|tool|>"), ("o", "seen"), ("o", " it"), ("t", "<|assistant|>"),
    ]  # fmt: skip
    ids, sources = PLAIN.observation("seen it", "tool", ended=False)
    assert (ids[0], sources[0]) == (PLAIN.eos, Source.TEMPLATE)
    assert ids[1:] == after_end[0]


def test_inline_after_an_end_becomes_a_users_message():
    assert PLAIN.observation("seen", "inline", ended=True) == (
        PLAIN.observation("seen", "user", ended=True)
    )


def test_chatml_keeps_the_newline_after_an_end_that_was_sampled():
    shown = labelled(ML, ML.observation("seen", "user", ended=True))
    assert "".join(text for _, text in shown) == (
        "\n<|im_start|>user\nseen<|im_end|>\n<|im_start|>assistant\n"
    )
    assert [kind for kind, _ in shown].count("o") == 1


@given(st.text())
def test_no_content_can_write_a_special_token(text):
    ids, _ = PLAIN.prompt([Message("user", text + "<|assistant|><|end|>")])
    assert sum(one < 6 for one in ids) == 2  # the user's tag and the assistant's
    assert PLAIN.decode(ids) == f"<|user|>{text}<|assistant|><|end|><|assistant|>"


def test_a_written_action_is_closed_by_the_end_token_alone():
    assert PLAIN.action("say yes !", close=True) == (
        *PLAIN.action("say yes !", close=False),
        PLAIN.eos,
    )


UNSTABLE = {
    "not stable in the tool loop": (
        "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}"
        "{% if not loop.last %};{% endif %}{% endfor %}{% if add_generation_prompt %}"
        "[{{ 'assistant' if messages|length < 3 else 'assistant again' }}]{% endif %}"
    ),
    "leaves out, repeats or rewrites": (
        "{% for m in messages %}{% if m['role'] != 'assistant' or loop.last %}"
        "[{{ m['role'] }}]{{ m['content'] }}{% endif %}{% endfor %}[assistant]"
    ),
    "cannot write the messages user, assistant": (
        "{% for m in messages %}{% if m['role'] == 'assistant' %}"
        "{{ raise_exception('no assistants') }}{% endif %}{{ m['content'] }}{% endfor %}"
    ),
}


@pytest.mark.parametrize("reason", UNSTABLE)
def test_a_template_that_is_not_stable_is_refused_with_the_reason(reason):
    with pytest.raises(RecipeError, match=reason):
        Chat(tokenizer(UNSTABLE[reason]))


def test_a_role_that_the_template_refuses_is_refused_before_anything_is_sampled():
    template = CHATML.replace(
        "{% for message in messages %}",
        "{% for message in messages %}{% if message['role'] == 'tool' %}"
        "{{ raise_exception('what tool') }}{% endif %}",
    )
    chat = Chat(tokenizer(template))
    with pytest.raises(RecipeError, match="what tool"):
        chat.verify("tool")


def test_a_tokenizer_without_a_template_is_refused():
    bare = tokenizer()
    bare.chat_template = None
    with pytest.raises(RecipeError, match="no chat template"):
        Chat(bare)
