"""``report`` writes a page about one run or several."""

from __future__ import annotations

import json
from pathlib import Path

from tests.tracking.report_made import made_run


def a_run(name):
    """A run in the test's own ``runs``, as `made_run` makes it."""
    folder = made_run(Path("runs") / name)
    (folder / "recipe.yaml").write_text("name: demo\n")
    return folder


def test_the_page_of_one_run_lies_in_its_folder(command):
    folder = a_run("demo-1")
    done = command("report", "demo-1")
    assert (done.code, done.out, done.err) == (0, f"{folder / 'report.html'}\n", "")
    assert "<h1>demo</h1>" in (folder / "report.html").read_text(encoding="utf-8")


def test_json_says_where_the_page_is(command):
    a_run("demo-1")
    done = command("report", "demo-1", "--json")
    assert json.loads(done.out) == {"path": "runs/demo-1/report.html"}


def test_several_runs_make_one_page_here(command):
    for name in ("demo-1", "demo-2"):
        a_run(name)
    done = command("report", "demo-1", "runs/demo-2", "demo-1")
    text = Path("report.html").read_text(encoding="utf-8")
    assert (done.code, done.out) == (0, "report.html\n")
    assert text.count('class="status finished"') == 2  # a run named twice is shown once


def test_the_page_can_be_written_elsewhere(command):
    a_run("demo-1")
    assert command("report", "demo-1", "--out", "pages/one.html").code == 0
    assert Path("pages/one.html").is_file()


def test_a_page_that_cannot_be_written_is_one_line(command):
    a_run("demo-1")
    Path("taken").mkdir()
    done = command("report", "demo-1", "--out", "taken")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: taken: cannot be written: ")
    assert len(done.err.splitlines()) == 1


def test_a_run_that_is_not_there_is_suggested(command):
    a_run("demo-1")
    done = command("report", "demo-2")
    assert done.code == 2
    assert "there is no run 'demo-2'" in done.err
    assert "'demo-1'" in done.err
