"""Five mistakes: how soon `agentrecipes check` reports each, beside `trl grpo --config`.

    python bench/check_vs_trl.py            # the first call installs TRL beside us
    python bench/check_vs_trl.py --quick    # two repeats instead of five
    python bench/check_vs_trl.py --json

Every measurement is a process of its own, on files that the operating system has read before. The
clock stops at the first line that names the mistake, or at the end where no line does. A side has
caught a mistake if it named it and its exit code is not 0. TRL has no command that only checks: its
model (2 million parameters, random) and its data (32 lines) are local files, and nothing is looked
for on a network. Both valid files are run first, and must be accepted; TRL trains one step then.
"""

from __future__ import annotations

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beside_trl import inside, network, tokenizer
from measuring import arguments, command, machine, put, ratio, report, wait_for_quiet

LIMIT_SECONDS = 300.0
RECIPE: dict[str, Any] = {
    "name": "valid",
    "model": "tiny",
    "environment": {"name": "search", "dataset": {"name": "world", "chains": [1]}},
    "rewards": ["exact_match"],
    "rollout": {"tasks": 2, "group_size": 4},
    "algorithm": "dapo",
    "iterations": 1,
}
CONFIG: dict[str, Any] = {
    "reward_funcs": ["get_soft_overlong_punishment"],
    "use_cpu": True,
    "bf16": False,
    "dtype": "float32",
    "num_generations": 4,
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 1,
    "max_completion_length": 8,
    "max_steps": 1,
    "report_to": "none",
    "save_strategy": "no",
}


@dataclass(frozen=True)
class Mistake:
    """One mistake in both languages: what replaces what, and the words that name it."""

    name: str
    recipe: Mapping[str, Any]
    config: Mapping[str, Any]
    ours: str  # pattern of a line
    trls: str


MISTAKES = (
    Mistake(
        "unknown key",
        {"rollout": {"tasks": 2, "group_sise": 4}},
        {"num_generationz": 4},
        "error: .*group_sise",
        "error: .*num_generationz",
    ),
    Mistake(
        "bad type",
        {"rollout": {"tasks": 2, "group_size": "many"}},
        {"num_generations": "many"},
        "error: .*'many'",
        "error: .*'many'",
    ),
    Mistake(
        "group of one",
        {"rollout": {"tasks": 2, "group_size": 1}},
        {"num_generations": 1},
        "error: .*group_size is 1",
        "Error: .*(at least 2|more than one|num_generations)",
    ),
    Mistake(
        "unknown loss",
        {"algorithm": "dappo"},
        {"loss_type": "dappo"},
        "error: .*'dappo'",
        "Error: .*dappo",
    ),
    Mistake(
        "unknown reward",
        {"rewards": ["exact_macth"]},
        {"reward_funcs": ["exact_macth"]},
        "error: .*'exact_macth'",
        "Error: .*exact_macth",
    ),
)


@dataclass(frozen=True)
class Answer:
    """What a command said: seconds to the line that names the mistake, else to its end."""

    seconds: float
    line: str  # empty: no line names it
    code: int

    @property
    def caught(self) -> bool:
        return bool(self.line) and self.code > 0


def asked(command: list[str], pattern: str) -> Answer:
    """Run a command to its end, or for LIMIT_SECONDS."""
    settings = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    began = time.perf_counter()
    found, seconds = "", 0.0
    with subprocess.Popen(
        command,
        env={**os.environ, **settings, "COLUMNS": "400"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # it and what it starts end together
    ) as process:
        limit = threading.Timer(LIMIT_SECONDS, os.killpg, (process.pid, signal.SIGKILL))
        limit.start()
        assert process.stdout is not None
        for line in process.stdout:
            if not found and re.search(pattern, line):
                found, seconds = line.strip(), time.perf_counter() - began
        code = process.wait()
        limit.cancel()
    return Answer(seconds if found else time.perf_counter() - began, found, code)


def prepared(folder: Path) -> dict[str, Any]:
    """TRL's model and data, written down; the fields that name them."""
    network("2m").save_pretrained(folder / "model")
    tokenizer("2m").save_pretrained(folder / "model")
    (folder / "data").mkdir()
    lines = [json.dumps({"prompt": f"w{n} w5 w6"}) for n in range(2, 34)]
    (folder / "data" / "train.jsonl").write_text("\n".join(lines))
    return {
        "model_name_or_path": str(folder / "model"),
        "dataset_name": str(folder / "data"),
        "output_dir": str(folder / "out"),
    }


def commands(folder: Path, mistake: Mistake | None, local: Mapping[str, Any]) -> dict[str, Any]:
    """Both sides' command for a mistake, or for the valid files; JSON is YAML."""
    programs = Path(sys.executable).parent
    recipe, config = folder / "recipe.yaml", folder / "config.yaml"
    replaced = (mistake.recipe, mistake.config) if mistake else ({}, {})
    recipe.write_text(json.dumps({**RECIPE, **replaced[0]}, indent=2))
    config.write_text(json.dumps({**CONFIG, **local, **replaced[1]}, indent=2))
    return {
        "ours": [str(programs / "agentrecipes"), "check", str(recipe)],
        "trl": [str(programs / "trl"), "grpo", "--config", str(config)],
    }


def accepted(folder: Path, local: Mapping[str, Any]) -> None:
    """See that nothing but the mistakes is wrong.

    Raises:
        SystemExit: a side does not accept its valid file.
    """
    for side, words in commands(folder, None, local).items():
        answer = asked(words, "[Ee]rror: ")
        if answer.code:
            raise SystemExit(f"{side} refuses the valid file: {answer.line}")


def measured(folder: Path, mistake: Mistake, local: Mapping[str, Any], repeats: int) -> Any:
    """The row of a mistake; the order of the sides is turned round each time."""
    made = commands(folder, mistake, local)
    patterns = {"ours": mistake.ours, "trl": mistake.trls}
    answers: dict[str, list[Answer]] = {"ours": [], "trl": []}
    for number in range(repeats):
        for side in ("ours", "trl") if number % 2 == 0 else ("trl", "ours"):
            answers[side].append(asked(made[side], patterns[side]))
    seconds = {side: [answer.seconds for answer in said] for side, said in answers.items()}
    caught = {side: all(answer.caught for answer in said) for side, said in answers.items()}
    both = all(caught.values())
    middle, low, high = ratio(seconds["ours"], seconds["trl"])
    return {
        **dict.fromkeys(("model", "prompt", "completion", "group", "prompts", "gradient_gap")),
        "mistake": mistake.name,
        "ours_seconds": statistics.median(seconds["ours"]) if caught["ours"] else None,
        "trl_seconds": statistics.median(seconds["trl"]) if caught["trl"] else None,
        "ratio": middle if both else None,
        "low": low if both and repeats > 1 else None,
        "high": high if both and repeats > 1 else None,
        "repeats": repeats,
        "ours_caught": caught["ours"],
        "trl_caught": caught["trl"],
        "ours_message": answers["ours"][-1].line.replace(f"{folder}/", ""),
        "trl_message": answers["trl"][-1].line.replace(f"{folder}/", ""),
    }


def told(row: dict[str, Any]) -> str:
    """A row as a line to read."""

    def side(name: str) -> str:
        seconds = row[f"{name}_seconds"]
        return "not caught" if seconds is None else f"{seconds:.2f} s"

    figures = f"{row['mistake']}: {side('ours')}, TRL {side('trl')}"
    if row["low"] is not None:
        figures += "  x{ratio:.1f} [{low:.1f}, {high:.1f}]".format(**row)
    return f"{figures}\n  {row['ours_message']}\n  {row['trl_message']}"


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as a Markdown table, with what each side says."""
    lines = [["mistake", "ours s", "TRL s", "ratio", "95 %"], ["---"] * 5]
    for row in rows:
        seconds = [row["ours_seconds"], row["trl_seconds"]]
        figures = ["not caught" if each is None else f"{each:.2f}" for each in seconds]
        wide = "" if row["low"] is None else f"{row['low']:.1f} to {row['high']:.1f}"
        times = "" if row["ratio"] is None else f"{row['ratio']:.1f}"
        lines.append([row["mistake"], *figures, times, wide])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def measurements(repeats: int) -> Iterator[dict[str, Any]]:
    """A row for each mistake."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        local = prepared(folder)
        accepted(folder, local)
        for mistake in MISTAKES:
            yield measured(folder, mistake, local, repeats)


def main() -> None:
    """Measure, print a table or JSON."""
    words = arguments(__doc__.splitlines()[0], shapes=False).parse_args()
    wait_for_quiet(force=words.force)
    repeats = min(words.repeats, 2) if words.quick else words.repeats
    rows = report(measurements(repeats), told, as_json=words.json)
    if words.write:
        put(words.write, "check_vs_trl", table(rows))
        found = {"command": command("check_vs_trl"), "machine": machine(), "rows": rows}
        kept = words.write.parent / "results" / "check_vs_trl.json"
        kept.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    inside(__file__)
    main()
