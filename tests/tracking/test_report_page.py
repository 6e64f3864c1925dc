"""One page: self-contained, whole without JavaScript, and safe whatever a policy answers."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from html.parser import HTMLParser

import pytest
from tests.tracking.report_made import HOSTILE, TEST, attempt, evaluation, made_run, write_json

from agentrecipes.records import Place
from agentrecipes.tracking.report.page import duration, write_report
from agentrecipes.tracking.tables import Tables

VOID = {"col", "wbr", "meta", "input", "br", "img", "link", "hr"}


class Reader(HTMLParser):
    """Elements with their attributes, the text of each kind, and tags that do not match."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        self.text.setdefault(self.open[-1] if self.open else "", []).append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def read(path):
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader


@pytest.fixture
def page(tmp_path):
    return write_report([made_run(tmp_path / "demo-1")], tmp_path / "report.html")


def test_the_page_is_well_formed_and_its_ids_are_single(page):
    reader = read(page)
    assert (reader.wrong, reader.open) == ([], [])
    ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = {each["href"].removeprefix("#") for each in reader.all("a")}
    assert links <= set(ids)


def test_the_page_asks_the_network_for_nothing(page):
    reader = read(page)
    names = {name for _, attributes in reader.elements for name in attributes}
    assert names & {"src", "srcset", "action", "data-src", "xlink:href"} == set()
    assert reader.all("link") == []
    assert not re.search(r"url\(|@import", "".join(reader.text["style"]))
    [policy] = [each["content"] for each in reader.all("meta") if "http-equiv" in each]
    assert policy.startswith("default-src 'none'")


def test_only_the_page_s_own_script_may_run(page):
    reader = read(page)
    assert [each.get("type") for each in reader.all("script")] == ["application/json", None]
    script = reader.text["script"][-1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    [policy] = [each["content"] for each in reader.all("meta") if "http-equiv" in each]
    assert f"script-src 'sha256-{digest}'" in policy
    assert not any(name.startswith("on") for _, attrs in reader.elements for name in attrs)


def test_a_hostile_answer_stays_text(page):
    reader = read(page)
    assert "alert(1)</script>" not in page.read_text(encoding="utf-8")
    assert reader.all("img") == []
    data = json.loads(reader.text["script"][0])
    assert HOSTILE in [one["answer"] for one in data["trajectories"]]


def test_hostile_names_of_everything_stay_text(tmp_path):
    run = tmp_path / "a<b>&c"
    tables = Tables(run / "tables", run.name)
    tables.run({"status": HOSTILE}, {"name": HOSTILE, HOSTILE: HOSTILE})
    short = "<b>&\"'"  # a place is part of a file's name
    tables.trajectories([attempt(HOSTILE, 0)], Place(short, 0, short, short))
    tables.evaluations([evaluation(Place(short, 0, short, short), 0.5)])
    assert tables.lost == []
    summary = {"status": HOSTILE, "seed": HOSTILE, "tripwires": [{"message": HOSTILE}]}
    write_json(run / "summary.json", {**summary, "lost": [HOSTILE]})
    write_json(run / "recipe.lock", {"origin": {"name": HOSTILE}})
    reader = read(write_report([run], tmp_path / "report.html"))
    assert (reader.wrong, reader.all("img"), len(reader.all("script"))) == ([], [], 2)
    assert HOSTILE in reader.text["h1"]


def test_the_figures_are_there_without_javascript(page):
    reader = read(page)
    titles = [text for text in reader.text["title"] if "dev, sampled" in text]
    assert "dev, sampled, reinforce 20: 0.75 (0.554 to 0.946)" in titles
    classes = [each.get("class") for each in reader.all("path")]
    assert {"line", "band"} <= set(classes)
    assert all(each["d"].startswith("M") for each in reader.all("path"))
    assert any("needs JavaScript" in text for text in reader.text["p"])
    [browser] = [each for each in reader.all("div") if each.get("id") == "browser"]
    assert "hidden" in browser


def test_the_sections_of_a_whole_run_are_all_there(page):
    reader = read(page)
    assert reader.text["h2"] == [
        *("Evaluation", "By kind of task", "Rewards while training", "Time spent"),
        *("Trajectories", "All that was logged", "Recipe"),
    ]
    assert {"exact_match = total", "turns"} & {text.strip() for text in reader.text["li"]}
    labels = [each["aria-label"] for each in reader.all("svg") if "aria-label" in each]
    # 20 iterations from 1.5 s and .5 s rising by .01: 31.9 s and 11.9 s of the stage's 50 s.
    assert "sampling 31.9 s, updating 11.9 s, evaluating and all else 6.2 s" in labels
    assert any(
        label.startswith("chain-2: 0.00 at the start of imitate, 0.12 at the start of reinforce")
        for label in labels
    )


def test_values_somebody_wrote_come_with_their_origin_and_defaults_apart(page):
    text = re.sub(r"\s+", " ", page.read_text(encoding="utf-8"))
    assert '<th scope="row">name</th><td>demo</td><td class="origin">demo.yaml:6</td>' in text
    assert '<th scope="row">steps</th><td>40</td><td class="origin">demo.yaml:12</td>' in text
    assert '<th scope="row">algorithm.name</th><td>sft</td></tr>' in text  # a default


def test_seeds_are_one_curve_and_other_recipes_another(tmp_path):
    seeds = [made_run(tmp_path / f"s{n}", seed=n, lift=n / 10) for n in (0, 1, 2)]
    reader = read(write_report(seeds, tmp_path / "seeds.html"))
    seed_lines = [each for each in reader.all("path") if each.get("class") == "seed"]
    assert len(seed_lines) >= 3
    assert any("3 seeds" in text for text in reader.text["title"])
    other = made_run(tmp_path / "other")
    summary = json.loads((other / "summary.json").read_text())
    write_json(other / "summary.json", {**summary, "recipe_hash": "9999999999"})
    Tables(other / "tables", "other").run({}, {"name": "demo", "gamma": 2})
    reader = read(write_report([seeds[0], other], tmp_path / "two.html"))
    assert "What differs" in reader.text["h3"]
    assert "gamma" in reader.text["th"]
    assert {"demo abcdef", "demo 999999"} <= set(reader.text["th"])


def test_a_thousand_trajectories_stay_under_three_megabytes(tmp_path):
    run = made_run(tmp_path / "demo-1")
    said = tuple(f"turn {n}" for n in range(4))
    many = [attempt(f"t{n // 8}", n % 8, said=said, length=60) for n in range(1200)]
    Tables(run / "tables", run.name).trajectories(many, TEST)
    path = write_report([run], tmp_path / "report.html")
    assert path.stat().st_size < 3_000_000
    data = json.loads(read(path).text["script"][0])
    assert len(data["trajectories"]) == 1000
    tokens = sum(len(turn["action"]) for one in data["trajectories"] for turn in one["turns"])
    assert tokens > 200_000  # four turns of sixty tokens each, none left out
    assert "of 1,203 trajectories" in path.read_text(encoding="utf-8")


def test_a_page_of_long_trajectories_stays_under_three_megabytes_too(tmp_path):
    run = made_run(tmp_path / "demo-1")
    many = [attempt(f"t{n}", 0, length=3000) for n in range(200)]
    Tables(run / "tables", run.name).trajectories(many, TEST)
    path = write_report([run], tmp_path / "report.html")
    assert path.stat().st_size < 3_000_000
    assert "are shown without their middle" in path.read_text(encoding="utf-8")


def test_a_run_without_its_model_shows_texts(tmp_path):
    run = made_run(tmp_path / "demo-1", tokenizer=False)
    data = json.loads(read(write_report([run], tmp_path / "report.html")).text["script"][0])
    assert data["trajectories"][0]["turns"][0]["action"] == "search it"
    assert data["pieces"] == []


@pytest.mark.parametrize(
    "missing",
    [
        *("tables/metrics", "tables/evaluations", "tables/trajectories", "tables/turns"),
        *("tables/runs", "tables/recipes", "tables", "summary.json", "recipe.lock", "."),
    ],
)
def test_a_half_empty_run_gives_a_page_with_what_there_is(tmp_path, missing):
    run = made_run(tmp_path / "demo-1")
    path = run / missing
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    reader = read(write_report([run], tmp_path / "report.html"))
    assert reader.wrong == []
    assert reader.text["h2"][-1] == "Recipe"


@pytest.mark.parametrize("table", ["metrics", "evaluations", "trajectories", "turns", "recipes"])
def test_a_damaged_table_is_told_on_the_page(tmp_path, table):
    run = made_run(tmp_path / "demo-1")
    damaged = sorted((run / "tables" / table).glob("*.parquet"))[0]
    damaged.write_bytes(b"no parquet")
    (run / "tables" / table / "manifest.json").write_text("{}")
    warnings = read(write_report([run], tmp_path / "report.html")).text["p"]
    assert any(f"could not be read: {table}/{damaged.name}" in text for text in warnings)


def test_a_damaged_summary_or_manifest_is_told_on_the_page(tmp_path):
    run = made_run(tmp_path / "demo-1")
    (run / "summary.json").write_text("{")
    (run / "tables" / "turns" / "manifest.json").write_text("{")
    text = write_report([run], tmp_path / "report.html").read_text(encoding="utf-8")
    assert "could not be read: summary.json" in text
    assert "could not be read: turns" in text


def test_a_page_of_no_runs_says_so(tmp_path):
    reader = read(write_report([], tmp_path / "report.html"))
    assert reader.text["h1"] == ["No runs"]


def test_writing_again_gives_the_same_page_in_one_step(page, tmp_path):
    before = page.read_bytes()
    assert write_report([tmp_path / "demo-1"], page).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.406, "0.406 s"), (59.9, "59.9 s"), (185.2, "3 min 05 s"), (3725.0, "1 h 02 min")],
)
def test_durations_are_told_in_words(seconds, words):
    assert duration(seconds) == words
