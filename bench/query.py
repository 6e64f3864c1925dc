"""Questions to a million trajectories of a thousand runs, beside the same questions to MLflow.

    python bench/query.py                              # two minutes, JSON
    python bench/query.py --write docs/performance.md  # its table there, its figures beside
    python bench/query.py --runs 10000 --trajectories 100 --metrics 5 --mlflow 0

The store is generated, the same one every time, and kept in `.bench/query`. MLflow gets as many
runs, each with the curve that the tables have; both sides must find the same mean curve. Seconds
are medians by the clock, and the least of this process; `--cpu` holds the latter to the limit, for
a machine that is busy with other work. The first question to a table copies the files of all runs
into one (`analysis/gathered.py`): `first_seconds` has that in it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ALGORITHMS = ("ppo", "grpo", "rloo", "dapo", "gspo")
SEEDS = 5  # runs that share a recipe
ITERATIONS = 50
KINDS = 20  # different contents; what tells the runs of one kind apart is their name
WORST = 20
LIMIT_SECONDS = 0.2
METRIC = "reward/exact_match"
QUESTIONS = {
    "mean curve by algorithm": "SELECT algorithm, iteration, avg(total) AS mean "
    "FROM trajectories JOIN runs USING (run) WHERE split = 'train' GROUP BY ALL ORDER BY ALL",
    "one run's worst trajectories": "SELECT task, attempt, total, stop, answer FROM trajectories "
    f"WHERE run = '{{run}}' ORDER BY total, iteration, group_id, attempt LIMIT {WORST}",
    "mean curve of a metric": "SELECT algorithm, iteration, avg(value) AS mean "
    f"FROM metrics JOIN runs USING (run) WHERE name = '{METRIC}' GROUP BY ALL ORDER BY ALL",
}


def name(number: int) -> str:
    return f"run-{number:05d}"


def contents(kind: int, words: argparse.Namespace) -> dict[str, Any]:
    """The tables of one kind of run, without its name: trajectories and metrics."""
    import numpy as np

    draw = np.random.default_rng(kind)
    count, group = words.trajectories, 4
    iteration = np.arange(count) * ITERATIONS // count
    total = (draw.random(count) < 0.3 + 0.1 * (kind % 3) + 0.008 * iteration).astype(float)
    per_turn = draw.integers(8, 64, count)
    turns = draw.integers(1, 6, count)
    steps = np.repeat(np.arange(200), words.metrics)
    names = [METRIC, *(f"health/figure_{index}" for index in range(1, words.metrics))]
    return {
        "trajectories": {
            "iteration": iteration,
            "split": ["train"] * count,
            "mode": ["sampled"] * count,
            "task": [f"question-{each}" for each in draw.integers(0, 3000, count)],
            "group_id": [f"g-{each // group}" for each in range(count)],
            "attempt": np.arange(count) % group,
            "role": [""] * count,
            "stop": np.array(["answered", "turns", "tokens"])[draw.integers(0, 3, count)],
            "turns": turns,
            "policy_tokens": turns * per_turn,
            "observation_tokens": turns * 32,
            "total": total,
            "parts": [[("exact_match", value)] for value in total],
            "advantage_mean": draw.normal(size=count),
            "answer": [f"entity {each}" for each in draw.integers(0, 3000, count)],
            "gold": [[f"entity {each}"] for each in draw.integers(0, 3000, count)],
            "policy_version": iteration,
            "seconds": draw.random(count),
        },
        "metrics": {
            "iteration": steps,
            "step": steps,
            "name": names * 200,
            "value": draw.random(200 * words.metrics),
            "seconds": steps.astype(float),
        },
    }


def generate(root: Path, words: argparse.Namespace) -> None:
    """A store of runs as training leaves them: compacted, each with its manifest."""
    import pyarrow as pa

    from agentrecipes.tracking import compaction
    from agentrecipes.tracking.columns import schema
    from agentrecipes.tracking.tables import Tables

    made = [contents(kind, words) for kind in range(min(KINDS, words.runs))]
    stage = "reinforce"
    for number in range(words.runs):
        run, recipe = name(number), number // SEEDS
        folder = root / run / "tables"
        tables = Tables(folder, run)
        algorithm = ALGORITHMS[recipe % len(ALGORITHMS)]
        tables.run(
            {
                **{"status": "finished", "recipe_hash": f"{recipe:08x}", "seed": number % SEEDS},
                "stages": [{"name": stage, "algorithm": algorithm}],
            },
            {"name": f"recipe_{recipe}", "algorithm": algorithm, "seed": number % SEEDS},
        )
        for table, columns in made[number % len(made)].items():
            rows = len(columns["iteration"])
            every = {"run": [run] * rows, "stage": [stage] * rows, **columns}
            file = folder / table / f"{stage}.000000.train.sampled.parquet"
            compaction.place(pa.Table.from_pydict(every, schema=schema(table)), file)
        tables.compact(stage)
        assert not tables.lost, tables.lost
    settle(root)


def settle(root: Path) -> None:
    """Make all of it an hour old: what still changes is not copied."""
    then = time.time() - 3600
    for folder in root.glob("*/tables/*"):
        os.utime(folder, (then, then))


def into_mlflow(root: Path, store: Path, words: argparse.Namespace) -> Any:
    """A client of an MLflow store that has the same curves."""
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param

    from agentrecipes.analysis.query import query

    there = store.exists()
    client = MlflowClient(f"sqlite:///{store}")
    if there:
        return client
    experiment = client.create_experiment("bench", artifact_location=store.parent.as_uri())
    sql = "SELECT run, iteration, avg(total) AS mean FROM trajectories GROUP BY ALL ORDER BY ALL"
    curves = defaultdict(list)
    for run, iteration, mean in query(sql, root).rows:
        curves[run].append(Metric(METRIC, mean, 0, iteration))
    algorithms = dict(query("SELECT run, algorithm FROM runs", root).rows)
    for run in list(curves)[: words.mlflow]:
        own = client.create_run(experiment, run_name=run)
        params = [Param("algorithm", algorithms[run])]
        client.log_batch(own.info.run_id, metrics=curves[run], params=params)
    return client


def asked_of_mlflow(client: Any) -> dict[tuple[str, int], float]:
    """The mean curve by algorithm, as MLflow's API gives it: run by run."""
    experiment = client.get_experiment_by_name("bench").experiment_id
    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    token = None
    while True:
        page = client.search_runs([experiment], max_results=1000, page_token=token)
        for run in page:
            for one in client.get_metric_history(run.info.run_id, METRIC):
                found[run.data.params["algorithm"], one.step].append(one.value)
        token = page.token
        if not token:
            return {key: statistics.fmean(values) for key, values in sorted(found.items())}


def timed(ask: Callable[[], Any], repeats: int) -> dict[str, float]:
    """Median seconds by the clock, and the least of this process: other work only adds to them."""
    clock, own = [], []
    for _ in range(repeats):
        began, cpu = time.perf_counter(), time.process_time()
        ask()
        clock.append(time.perf_counter() - began)
        own.append(time.process_time() - cpu)
    return {"seconds": statistics.median(clock), "cpu_seconds": min(own)}


def measured(root: Path, words: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each question; the first of them beside MLflow."""
    from agentrecipes.analysis.query import query

    run = name(words.runs // 2)
    for title, text in QUESTIONS.items():
        sql = text.format(run=run)
        began = time.perf_counter()
        rows = query(sql, root).rows
        first = time.perf_counter() - began
        row = {"question": title, "rows": len(rows), "first_seconds": first}
        row |= timed(lambda sql=sql: query(sql, root), words.repeats)
        yield row | {"holds": row["cpu_seconds" if words.cpu else "seconds"] < LIMIT_SECONDS}


def beside_mlflow(root: Path, words: argparse.Namespace) -> dict[str, Any]:
    """The seconds of MLflow's answer to the first question, on as many runs."""
    from agentrecipes.analysis.query import query

    began = time.perf_counter()
    client = into_mlflow(root, root.parent / f"mlflow-{words.mlflow}.db", words)
    writing = time.perf_counter() - began
    began, cpu = time.perf_counter(), time.process_time()
    asked = asked_of_mlflow(client)
    taken = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - cpu}
    same = None
    if words.mlflow >= words.runs:
        rows = query(QUESTIONS["mean curve by algorithm"], root).rows
        same = max(abs(asked[algorithm, iteration] - mean) for algorithm, iteration, mean in rows)
    return {
        "runs": words.mlflow,
        "writing_seconds": writing,
        "largest_difference": same,
        **taken,
    }


def markdown(told: dict[str, Any]) -> str:
    """The figures as lines and a table."""
    other = told["mlflow"]
    lines = [
        f"{told['trajectories']:,} trajectories, {told['metrics']:,} metric rows, "
        f"{told['runs']:,} runs; {os.cpu_count()} cores, load average {told['load']:.1f}; "
        f"`{told['command']}`",
        "",
        "| question | seconds | of this process | MLflow's API, seconds | of this process |",
        "| --- | --- | --- | --- | --- |",
    ]
    for index, row in enumerate(told["rows"]):
        theirs = ["", ""]
        if index == 0 and other:
            theirs = [f"{other['seconds']:.1f}", f"{other['cpu_seconds']:.1f}"]
        own = [f"{row['seconds']:.3f}", f"{row['cpu_seconds']:.3f}"]
        lines.append(f"| {' | '.join([row['question'], *own, *theirs])} |")
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str]) -> None:
    """Generate what is missing, ask, and print the answer as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--trajectories", type=int, default=1000, help="of each run")
    parser.add_argument("--metrics", type=int, default=20, help="of each run, 200 steps each")
    parser.add_argument("--mlflow", type=int, default=1000, help="runs in MLflow's store; 0: none")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--cpu", action="store_true", help="hold seconds of this process to it")
    parser.add_argument("--write", type=Path, help="put the table into this page, JSON beside")
    words = parser.parse_args(arguments)
    size = f"{words.runs}-{words.trajectories}-{words.metrics}"
    root = ROOT / ".bench" / "query" / size / "runs"
    if not root.is_dir():
        building = root.with_name("building")
        generate(building, words)
        building.rename(root)
    rows = list(measured(root, words))
    told = {
        "command": " ".join(["python bench/query.py", *arguments]),
        "runs": words.runs,
        "trajectories": words.runs * words.trajectories,
        "metrics": words.runs * words.metrics * 200,
        "load": os.getloadavg()[0],
        "rows": rows,
        "mlflow": beside_mlflow(root, words) if words.mlflow else None,
        "limit_seconds": LIMIT_SECONDS,
        "holds": all(row["holds"] for row in rows),
    }
    print(json.dumps(told, indent=1))
    if words.write:
        import measuring

        measuring.put(words.write, "query", markdown(told))
        (words.write.parent / "results" / "query.json").write_text(
            json.dumps(told, indent=1) + "\n"
        )
    raise SystemExit(0 if told["holds"] else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
