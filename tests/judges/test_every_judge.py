"""Every shipped judge holds what every judge must; the local one has a model of its own."""

from __future__ import annotations

import json
from typing import ClassVar

import pytest
import torch
from tests.judges.server import served

from agentrecipes.components import build, names
from agentrecipes.judges.asking import ask
from agentrecipes.models.words import word_tokenizer
from agentrecipes.testing import JudgeSuite
from agentrecipes.testing.judge_suite import RetryingSuite, Troubled

EASY = {"backoff_seconds": 0.001, "retries": 2}


def vector(text):
    return 200, json.dumps({"data": [{"embedding": [len(text), 0.5]}]})


class Served(RetryingSuite):
    """Of a judge behind a server, which `reply` answers for."""

    name: ClassVar[str]

    def reply(self, prompt) -> object:
        raise AssertionError("say what the server replies")

    @pytest.fixture
    def judge(self):
        with served(self.reply) as heard:
            yield build("judge", {"name": self.name, "model": "m", "base_url": heard.url, **EASY})

    @pytest.fixture
    def troubled(self):
        left = []

        def busy(prompt) -> object:
            left[0] -= 1
            return (503, "busy") if left[0] >= 0 else self.reply(prompt)

        with served(busy) as heard:

            def fails(times) -> Troubled:
                left[:] = [times]
                fields = {"model": f"m{times}", "base_url": heard.url, **EASY}
                return Troubled(build("judge", {"name": self.name, **fields}), lambda: tries(heard))

            yield fails


def tries(heard):
    return len(heard.bodies)


class TestOpenAI(Served):
    name = "openai"

    def reply(self, prompt):
        return f"Verdict: {len(prompt)}"


class TestOpenAIEmbeddings(Served):
    name = "openai_embeddings"

    def reply(self, prompt):
        return vector(prompt)


class TestRecorded(JudgeSuite):
    prompts = ("p", "q")

    @pytest.fixture
    def judge(self, tmp_path):
        lines = [{"prompt": "q", "reply": "no"}, {"prompt": "p", "reply": "Verdict: yes"}]
        file = tmp_path / "judge.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return build("judge", {"name": "recorded", "path": str(file)})


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a causal language model that was never trained, and its tokenizer."""
    from transformers import LlamaConfig, LlamaForCausalLM

    folder = tmp_path_factory.mktemp("model")
    tokenizer = word_tokenizer(["Is", "Rome", "old", "?", " yes", " no", "it"], 64)
    size = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    config = LlamaConfig(vocab_size=len(tokenizer), **size, **heads, **ends)
    torch.manual_seed(7)
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def local(model, **fields: object):
    return build("judge", {"name": "local", "path": str(model), "tokens": 6, **fields})


class TestLocal(JudgeSuite):
    @pytest.fixture
    def judge(self, model):
        return local(model, batch_size=1)


def test_a_local_model_says_what_it_says_without_this_package(model):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    network = AutoModelForCausalLM.from_pretrained(model)
    ids = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Is Rome old?"}], add_generation_prompt=True, return_dict=False
    )
    found = list(ids)
    for _ in range(6):  # the most likely token each time
        logits = network(torch.tensor([found])).logits[0, -1]
        found.append(int(logits.argmax()))
        if found[-1] == tokenizer.eos_token_id:
            break
    expected = tokenizer.decode(found[len(ids) :], skip_special_tokens=True).strip()
    [said] = ask(local(model, batch_size=4), ["Is Rome old?"], lambda reply: 1.0)
    assert said.reply == expected != ""


def test_no_shipped_judge_is_left_out():
    tested = {TestOpenAI.name, TestOpenAIEmbeddings.name, "recorded", "local"}
    assert tested == set(names("judge"))
