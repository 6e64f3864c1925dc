from __future__ import annotations

from agentrecipes.cli.summary import before_and_after, curve_of, summary_text


def row(stage, iteration, value, *, split="dev", mode="sampled", tasks=150):
    return {
        "stage": stage,
        "iteration": iteration,
        "split": split,
        "mode": mode,
        "metric": "exact_match",
        "value": value,
        "tasks": tasks,
    }


ROWS = [
    row("imitate", 0, 0.0),
    row("imitate", 0, 0.01, mode="greedy"),
    row("reinforce", 0, 0.5),
    row("reinforce", 0, 0.55, mode="greedy"),
    row("reinforce", 10, 0.8),
    row("reinforce", 10, 0.85, mode="greedy"),
    row("reinforce", 10, 0.82, split="test", tasks=300),
]
SUMMARY = {
    "run": "ledger-1",
    "dir": "runs/ledger-1",
    "status": "finished",
    "wall_seconds": 112.4,
    "evaluations": ROWS,
    "artifacts": {"model": "runs/ledger-1/model", "report": None, "mlflow_run_id": "abc"},
}


def test_the_curve_is_the_sampled_score_of_the_last_stage_measured_twice():
    lines = curve_of(ROWS).splitlines()
    assert lines[0] == "exact_match, sampled, dev, stage reinforce"
    assert lines[-1].split() == ["0", "iteration", "10"]
    assert curve_of(ROWS[:2]) == ""
    assert curve_of([]) == ""


def test_figures_stand_before_and_after_and_a_first_measurement_has_no_before():
    lines = [line.split() for line in before_and_after(ROWS).splitlines()]
    assert lines == [
        ["split", "mode", "metric", "before", "after", "tasks"],
        ["dev", "sampled", "exact_match", "0", "0.8", "150"],
        ["dev", "greedy", "exact_match", "0.01", "0.85", "150"],
        ["test", "sampled", "exact_match", "-", "0.82", "300"],
    ]


def test_a_run_ends_with_where_things_are_and_how_it_went():
    lines = summary_text(SUMMARY).splitlines()
    assert lines[-5:] == [
        "model   runs/ledger-1/model",
        "tables  runs/ledger-1/tables",
        "MLflow  abc",
        "",
        "ledger-1: finished in 1m52s",
    ]


def test_an_interrupted_run_says_how_to_go_on_and_what_was_lost():
    text = summary_text({**SUMMARY, "status": "interrupted", "lost": ["x"]})
    assert "Go on with: agentrecipes run --resume runs/ledger-1" in text
    assert text.endswith("1 records could not be written; see summary.json")
