"""``diff``, ``replay`` and ``verify`` on the command line."""

from __future__ import annotations

import json

import pytest
from tests.analysis.conftest import changed

from agentrecipes.cli.diff import diff_text
from agentrecipes.cli.main import main


@pytest.fixture
def command(runs, capsys):
    """Run a command on the small runs: exit code, stdout, stderr."""

    def call(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main([*map(str, words), "--runs-dir", str(runs)])
        out, err = capsys.readouterr()
        return end.value.code, out, err

    return call


def test_diff_as_json_has_the_promised_keys(command):
    code, out, err = command("diff", "grpo", "grpo", "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert {"recipe", "first_divergence", "metrics", "rewards"} <= set(found)
    assert (found["recipe"], found["first_divergence"]) == ([], None)
    parted = json.loads(command("diff", "grpo", "weighted", "--json")[1])["first_divergence"]
    promised = {"stage", "iteration", "task", "attempt", "turn", "token", "a", "b"}
    assert promised <= set(parted)


def test_diff_in_words_names_the_weight_first(command):
    code, out, _ = command("diff", "grpo", "weighted")
    blocks = out.split("\n\n")
    assert code == 0
    assert blocks[1].splitlines()[2].split() == ["stages.imitate.rewards.1.weight", "0.5", "4.0"]
    assert blocks[2] == "lock: equal"
    assert blocks[3].startswith("first divergent token: stage reinforce, iteration 1, task ")
    assert [block.split()[0] for block in blocks[4:]] == ["metrics,", "rewards,"]


def test_diff_of_equal_runs_says_so_in_words(command):
    _, out, _ = command("diff", "ppo", "ppo")
    assert "recipe: equal" in out
    assert "every training token is equal" in out


def test_what_the_actions_say_is_shown_from_where_they_part():
    place = {"stage": "s", "iteration": 0, "task": "t", "attempt": 0, "turn": 1}
    parted = {**place, "part": "action", "token": 9, "a": 5, "b": None}
    texts = {"a_text": f"{'x' * 40}one", "b_text": None}
    empty = {"recipe": [], "lock": [], "metrics": [], "rewards": []}
    names = {"a": {"run": "p"}, "b": {"run": "q"}}
    told = diff_text({**names, **empty, "first_divergence": {**parted, **texts}})
    assert "b: no token there; the turn was not played" in told
    texts = {"a_text": f"{'x' * 40}one", "b_text": f"{'x' * 40}two"}
    told = diff_text({**names, **empty, "first_divergence": {**parted, **texts}})
    assert f'a: token 5; the action says "…{"x" * 20}one"' in told


@pytest.mark.parametrize("words", [("diff", "grpo", "grpa"), ("diff", "gpro", "ppo")])
def test_a_run_that_does_not_exist_is_refused_with_a_suggestion(command, words):
    code, out, err = command(*words)
    assert (code, out) == (2, "")
    assert "there is no run" in err
    assert "Did you mean 'grpo'?" in err


def test_replay_as_json_has_the_promised_keys(command):
    code, out, err = command("replay", "grpo", "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    promised = ("trajectories", "identical", "max_reward_gap", "max_advantage_gap", "flipped_pairs")
    assert [found[key] for key in promised] == [48, True, 0.0, 0.0, []]


def test_replay_in_words_shows_pairs_and_says_what_it_cannot_do(command):
    code, out, err = command("replay", "ppo", "rewards[1].weight=-3")
    assert code == 0
    assert "ppo: 48 trajectories, not as stored" in out
    assert "largest gap of an advantage not replayed" in out
    assert "pairs swap their order\niteration  task" in out
    assert "0 advantages change their sign" in out
    assert "3 iterations: the advantages cannot be replayed: they are made from the critic" in err
    _, out, _ = command("replay", "grpo", "rewards[1].weight=-3")
    assert "… and" in out


def test_replay_refuses_what_is_not_replayed_and_runs_that_are_not_there(command):
    code, out, err = command("replay", "grpo", "rollout.tasks=4")
    assert (code, out) == (2, "")
    assert "'rollout.tasks' decides on what is sampled or learned" in err
    assert command("replay", "grpa")[0] == 2
    assert command("replay")[0] == 2


def test_verify_as_json_has_the_promised_keys(command):
    code, out, err = command("verify", "grpo", "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    promised = {"ok", "trajectories", "tokens", "retokenised", "forks", "logp_gap_max", "problems"}
    assert promised <= set(found)
    assert (found["ok"], found["problems"]) == (True, [])
    assert command("verify", "grpa")[0] == 2


def test_verify_names_what_does_not_hold_and_ends_with_four(copied, command, capsys):
    folder = copied("grpo")

    def change(rows) -> None:
        for row in [row for row in rows if row["split"] == "train"][:30]:
            row["total"] += 1.0

    changed(folder, "trajectories", change)
    code, out, err = command("verify", folder)
    assert code == 4
    assert "error: stage reinforce, iteration 0, split train, mode sampled, task train-" in err
    assert "attempt 0: total is " in err
    assert len(err.splitlines()) == 20
    assert out.startswith("grpo: 60 problems\n")  # the turns do not add up to it, nor do the parts
    assert "40 problems are not shown" in out
    code, out, _ = command("verify", folder, "--json")
    assert (code, json.loads(out)["ok"], len(json.loads(out)["problems"])) == (4, False, 60)
