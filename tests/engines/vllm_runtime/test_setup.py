"""What can be said of vLLM before it starts, and of turns once it is done; vLLM is not needed."""

import socket
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from ragged import MODEL, STOP, TOKENIZER, requests
from transformers import LlamaConfig, LlamaForCausalLM

from agentrecipes.components import build
from agentrecipes.engines.vllm import Vllm
from agentrecipes.engines.vllm_runtime import process, setup
from agentrecipes.engines.vllm_runtime.process import ServerProcess, flags
from agentrecipes.engines.vllm_runtime.turns import Drawn, Turns
from agentrecipes.engines.vllm_server import VllmServer
from agentrecipes.errors import EngineError, MissingExtra

TEXTS = [TOKENIZER.decode([index]).strip() for index in range(len(TOKENIZER))]
CLOSE, OTHER = TEXTS.index("</search>"), TEXTS.index("</answer>")


def drawn(ids, spans=None):
    """A turn whose log-probabilities are -1, -2, ..., of policy version 4."""
    logp = [-1.0 - n for n in range(len(ids))]
    return Drawn(ids, logp, spans or [(4, len(ids))], seconds=0.5)


def turns(longest=100):
    return Turns(MODEL, TOKENIZER, longest)


def test_a_turn_is_cut_after_its_stop_string_and_so_are_its_log_probabilities():
    [request] = requests(1)
    sample = turns().sample(request, drawn([310, CLOSE, 311, OTHER]))
    assert (sample.ids, sample.logp, sample.finish) == ((310, CLOSE), (-1.0, -2.0), "stop")
    assert (sample.policy_version, sample.policy_versions, sample.seconds) == (4, (), 0.5)


def test_an_end_comes_before_a_later_stop_string():
    [request] = requests(1)
    end = TOKENIZER.eos_token_id
    sample = turns().sample(request, drawn([310, end, CLOSE]))
    assert (sample.ids, sample.finish) == ((310, end), "eos")


def test_a_turn_without_either_is_as_long_as_it_was_drawn():
    [request] = requests(1)
    sample = turns().sample(request, drawn([310, 311, 312]))
    assert (sample.ids, sample.finish) == ((310, 311, 312), "length")


def test_versions_are_told_by_token_where_there_are_two():
    [request] = requests(1)
    sample = turns().sample(request, drawn([310, 311, 312, CLOSE, 313], [(4, 1), (5, 5)]))
    assert sample.policy_version == 4
    assert sample.policy_versions == (4, 5, 5, 5)


@pytest.mark.parametrize("bad", [float("nan"), float("-inf"), -9999.0])
def test_log_probabilities_that_are_no_numbers_are_an_error(bad):
    [request] = requests(1)
    with pytest.raises(EngineError, match="not finite"):
        turns().sample(request, Drawn([310, 311], [-1.0, bad], [(4, 2)], 0.5))


def test_a_turn_of_nothing_is_an_error():
    with pytest.raises(EngineError, match="0 tokens"):
        turns().sample(requests(1)[0], drawn([]))


def test_vllm_is_left_no_choice_and_told_which_ids_stop():
    [request] = requests(1, temperature=0.7, top_p=0.9)
    asked = turns().asked(request)
    assert asked["temperature"] == 0.0
    assert {CLOSE, OTHER, TOKENIZER.eos_token_id} <= set(asked["stop_token_ids"])
    assert asked["max_tokens"] == request.max_tokens
    own = asked["extra_args"]
    assert (own["ar_temperature"], own["ar_top_p"], own["ar_limit"]) == (0.7, 0.9, 20)


def test_text_is_looked_at_only_for_stop_strings_that_spread_over_tokens():
    [one] = requests(1, stop=STOP)
    [spread] = requests(1, stop=(" kalon don",))
    assert turns().asked(spread)["stop"] == [" kalon don"]
    assert turns().asked(spread)["detokenize"] == bool(turns().asked(spread)["stop"])
    assert turns().asked(one)["detokenize"] == bool(turns().asked(one)["stop"])


@pytest.mark.parametrize(("size", "most"), [(0, 5), (5, 0), (60, 41)])
def test_a_turn_that_vllm_could_not_sample_is_refused(size, most):
    request = replace(requests(1)[0], ids=(300,) * size, max_tokens=most)
    with pytest.raises(EngineError, match="at most 100"):
        turns().check([request])


def weights():
    return dict(MODEL.state_dict())


def test_an_update_is_a_copy_in_the_engines_precision():
    taken = dict(setup.checked(weights().items(), setup.shapes(MODEL), "bfloat16"))
    assert taken.keys() == weights().keys()
    head = taken["lm_head.weight"]
    assert head.dtype == torch.bfloat16
    assert torch.equal(head, MODEL.lm_head.weight.bfloat16())
    same = dict(setup.checked(weights().items(), setup.shapes(MODEL), "float32"))
    assert same["lm_head.weight"].data_ptr() != MODEL.lm_head.weight.data_ptr()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda w: w | {"other.weight": w["lm_head.weight"]}, "'other.weight'"),
        (lambda w: w | {"lm_head.weight": w["lm_head.weight"][:-1]}, "'lm_head.weight'"),
        (lambda w: {k: v for k, v in w.items() if k != "lm_head.weight"}, "1 weights are missing"),
    ],
)
def test_weights_of_another_model_are_named(change, said):
    with pytest.raises(EngineError, match=said):
        list(setup.checked(change(weights()).items(), setup.shapes(MODEL), "float32"))


def test_a_tied_model_wants_its_head_too():
    config = LlamaConfig(
        vocab_size=50,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=1,
        tie_word_embeddings=True,
    )
    assert setup.shapes(LlamaForCausalLM(config))["lm_head.weight"] == (50, 32)


def test_heads_that_the_cpu_build_does_not_know_are_refused():
    config = LlamaConfig(
        vocab_size=50,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=2,
    )
    model = LlamaForCausalLM(config)
    setup.require_heads(model, on_cpu=False)
    with pytest.raises(EngineError, match="16 wide"):
        setup.require_heads(model, on_cpu=True)


@pytest.mark.parametrize(
    ("found", "said"), [(None, "not installed"), ("0.31.2", "vLLM 0.31.2"), ("1.32", "vLLM 1.32")]
)
def test_a_vllm_that_was_not_tested_is_refused_with_the_command(found, said):
    with pytest.raises(MissingExtra, match=said) as caught:
        setup.require_version(found)
    assert "pip install 'agentrecipes[vllm" in str(caught.value)
    assert caught.value.exit_code == 3


def test_builds_of_the_tested_version_are_taken():
    for found in ("0.32.0", "0.32.1+cpu", "0.32"):
        assert setup.require_version(found) is None


def test_the_bound_depends_on_who_rounds():
    assert Vllm().bound(fp32=True) == setup.EXACT_NATS
    assert Vllm(dtype="bf16").bound(fp32=True) == setup.ROUNDED_NATS
    assert VllmServer().bound(fp32=False) == setup.ROUNDED_NATS
    assert VllmServer(max_gap=0.3).bound(fp32=True) == 0.3


def test_a_port_that_is_taken_is_told_before_anything_starts(tmp_path):
    with socket.socket() as busy:
        busy.bind((process.HOST, 0))
        busy.listen()
        port = busy.getsockname()[1]
        with pytest.raises(EngineError, match=f"port {port} is taken"):
            ServerProcess({}, tmp_path / "log", port=port, gpus=())
    assert not (tmp_path / "log").exists()


def test_a_server_that_does_not_start_says_why(tmp_path):
    process = ServerProcess({"no_such_argument": 1}, tmp_path / "log", port=None, gpus=())
    try:
        with pytest.raises(EngineError, match=r"did not start: .*log"):
            process.wait(120)
    finally:
        process.close()


def test_a_server_that_is_not_there_is_named():
    url = f"http://{process.HOST}:{process.free_port()}"
    with pytest.raises(EngineError, match=f"{url} does not answer") as caught:
        VllmServer(urls=(url,)).start(MODEL, TOKENIZER)
    assert "--worker-extension-cls" in str(caught.value)  # how to start one


def test_arguments_become_the_flags_of_a_command_line():
    given = {"max_model_len": 8, "enforce_eager": True, "sleep": False, "list_of": ["a", "b"]}
    assert flags(given) == ["--max-model-len", "8", "--enforce-eager", "--list-of", "a", "b"]


def test_the_folder_holds_no_weights(tmp_path):
    setup.write_folder(MODEL, TOKENIZER, tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"config.json", "tokenizer.json"} <= names
    assert not [name for name in names if Path(name).suffix in (".safetensors", ".bin")]


def test_servers_are_found_or_started_but_not_both():
    with pytest.raises(ValueError, match="urls names servers"):
        build("engine", {"name": "vllm_server", "urls": ["http://a:1"], "port": 5})
