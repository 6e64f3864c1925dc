from __future__ import annotations

import io

from rich.console import Console

from agentrecipes.cli.progress import Lines, Live, Watch, duration, evaluation_line

ROW = {
    "stage": "reinforce",
    "iteration": 10,
    "split": "dev",
    "mode": "sampled",
    "metric": "exact_match",
    "value": 0.84,
    "tasks": 150,
    "standard_error": 0.02,
}


def test_plain_lines_tell_the_stage_the_figures_and_the_time_left():
    said, now = [], iter([0.0, 4.0, 12.0, 20.0])
    lines = Lines(said.append, lambda: next(now))
    lines.stage("imitate", "sft", 40)
    lines.advance(4, {"loss/total": 2.0})  # 4 s after the begin: too soon for another line
    lines.advance(10, {"loss/total": 1.5})  # 12 s for 10 of 40 steps: 36 s for the other 30
    lines.advance(40, {"loss/total": 0.5})  # the end always has its line
    assert said == [
        "imitate: sft, 40 to do",
        "imitate: 10/40  loss/total 1.5  36s left",
        "imitate: 40/40  loss/total 0.5  0s left",
    ]


def test_a_stage_that_is_extended_has_no_time_left():
    said, now = [], iter([0.0, 10.0, 11.0, 30.0])
    lines = Lines(said.append, lambda: next(now))
    lines.stage("imitate", "sft", 10)
    lines.advance(10, {"loss/total": 2.0})
    lines.advance(11, {"loss/total": 1.0})  # 1 s after the last line
    lines.advance(20, {"loss/total": 0.5})
    assert said[1:] == [
        "imitate: 10/10  loss/total 2  0s left",
        "imitate: 20/20  loss/total 0.5  0s left",
    ]


def test_an_evaluation_is_one_line():
    expected = "reinforce 10  dev sampled  exact_match 0.840 ± 0.020 (150 tasks)"
    assert evaluation_line(ROW) == expected
    assert "exact_match null (150 tasks)" in evaluation_line(
        {**ROW, "value": None, "standard_error": None}
    )


def test_the_watcher_keeps_evaluations_and_passes_everything_on():
    said = []
    with Watch(Lines(said.append)) as watch:
        watch.stage("s", "ppo", 1)
        watch.evaluation(ROW)
        watch.note("look")
    assert watch.rows == [ROW]
    assert said[0] == "s: ppo, 1 to do"
    assert said[2] == "look"


def test_the_live_line_shows_the_stage_and_the_last_sampled_score():
    screen = io.StringIO()
    console = Console(file=screen, width=120, force_terminal=True, color_system=None)
    with Watch(Live(console)) as watch:
        watch.stage("reinforce", "ppo", 100)
        watch.evaluation({**ROW, "mode": "greedy", "value": 0.99})
        watch.evaluation(ROW)
        watch.advance(30, {"loss/total": 0.25})
        watch.note("[not markup]")
    shown = screen.getvalue()
    assert "reinforce (ppo)" in shown
    assert "30/100" in shown
    assert "exact_match 0.840  loss/total 0.25" in shown
    assert "0.990" not in shown
    assert "[not markup]" in shown


def test_durations_are_for_people():
    assert [duration(s) for s in (0.4, 59.4, 60, 185, 3600, 7625)] == [
        "0s",
        "59s",
        "1m00s",
        "3m05s",
        "1h00m",
        "2h07m",
    ]
