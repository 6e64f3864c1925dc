"""RAGAS' judgement of twenty transcripts, recorded for good.

    python bench/ragas_judged.py               # again from the recording: the same to the last bit?
    python bench/ragas_judged.py --ask         # asked anew, of a judge over HTTP that counts words
    python bench/ragas_judged.py --ask PATH    # asked anew, of a model: its folder or hub name

All need the extra ``ragas``. The last two write tests/golden/ragas: transcripts of questions from
HotpotQA, searched and answered by a script that sometimes is wrong; the judge's replies; scores.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import re
import tempfile
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from agentrecipes.cli.main import main as main_of_command
from agentrecipes.components import build
from agentrecipes.testing.play import Played, play

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "golden" / "ragas"
NAMES = ("ragas_context_relevance", "ragas_faithfulness")
RECIPE, TRANSCRIPTS = FOLDER / "recipe.yaml", FOLDER / "transcripts.jsonl"
SAID, SCORES = FOLDER / "judge.jsonl.gz", FOLDER / "scores.json"
TOLD = ("id", "parts", "per_turn", "total")  # what is compared; times are not
MANY, LONGEST = 20, 700  # transcripts; characters of an observation that are kept
WORD = re.compile(r"\w{4,}")


def transcripts() -> list[dict[str, Any]]:
    """Twenty questions of the test split, searched for their supporting titles and answered."""
    dataset = {"name": "sample", "set": "hotpotqa"}
    environment = build("environment", {"name": "search", "dataset": dataset})
    tasks = environment.tasks("test")[: MANY + 1]
    return [told(play(environment, task, seed=n), n, tasks) for n, task in enumerate(tasks[:MANY])]


def told(played: Played, number: int, tasks: Sequence[Any]) -> dict[str, Any]:
    """One transcript: one in five has a wrong answer; one has no answer, and one no search."""
    task = played.task
    turns: list[dict[str, Any]] = [
        {"action": said, "observation": seen[:LONGEST] or None} for said, seen in played.turns
    ]
    if number % 5 == 3:
        wrong = tasks[number + 1].gold_answers[0]
        turns[-1]["action"] = turns[-1]["action"].replace(task.gold_answers[0], wrong)
    if number == 9:
        del turns[-1]
    if number == 14:
        del turns[:-1]
    asked = {"question": task.question, "golden_answers": list(task.gold_answers)}
    return {"id": task.id, "task": asked, "turns": turns}


def words(text: str) -> set[str]:
    """The words of four letters or more, small."""
    return set(WORD.findall(text.lower()))


def reply(prompt: str) -> str:
    """What a judge says that counts words; of a question with many of them, nothing of use."""
    asked: Mapping[str, Any] = json.loads(
        prompt.rpartition("\ninput: ")[2].rpartition("\nOutput")[0]
    )
    question = asked.get("user_input", asked.get("question", ""))
    if len(words(question)) > 14:
        return "That is a long question. As far as I can tell, the context is of some use."
    if "user_input" in asked:
        wanted = words(question)
        share = len(wanted & words(asked["context"])) / max(len(wanted), 1)
        return json.dumps({"rating": sum(share >= least for least in (0.3, 0.6))})
    if "answer" in asked:
        pieces = [piece.strip() for piece in re.split(r",| and ", asked["answer"]) if piece.strip()]
        return json.dumps({"statements": [f"The answer has {piece} in it." for piece in pieces]})
    seen = asked["context"].lower()
    verdicts = []
    for statement in asked["statements"]:
        piece = statement.removeprefix("The answer has ").removesuffix(" in it.")
        found = piece.lower() in seen
        reason = f"{piece} {'stands' if found else 'does not stand'} in the context."
        verdicts.append({"statement": statement, "reason": reason, "verdict": int(found)})
    return json.dumps({"statements": verdicts})


class Handler(BaseHTTPRequestHandler):
    """OpenAI's chat protocol on loopback."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message = {"role": "assistant", "content": reply(asked["messages"][-1]["content"])}
        body = json.dumps({"choices": [{"message": message}]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Quiet."""


def scored(more: Sequence[str] = ()) -> list[dict[str, Any]]:
    """What ``agentrecipes score`` says of the transcripts."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            main_of_command(["score", str(RECIPE), str(TRANSCRIPTS), *more, "--json"])
    except SystemExit as end:
        if end.code:
            raise
    scores = json.loads(out.getvalue())["scores"]
    return [{key: each[key] for key in TOLD} for each in scores]


def ask(model: str) -> None:
    """Write the transcripts, have them judged, and keep what was replied."""
    lines = [json.dumps(each, ensure_ascii=False) for each in transcripts()]
    TRANSCRIPTS.write_text("\n".join([*lines, ""]), encoding="utf-8")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    judge = {"name": "openai", "model": "words", "base_url": url, "concurrency": 4}
    if model:
        judge = {"name": "local", "path": model, "tokens": 160, "batch_size": 1}
    with tempfile.TemporaryDirectory() as kept:
        rewards = [{"name": name, "judge": {**judge, "cache": kept}} for name in NAMES]
        scores = scored([f"rewards={json.dumps(rewards)}"])
        replies = [each.read_text(encoding="utf-8") for each in sorted(Path(kept).glob("*/*.json"))]
    server.shutdown()
    SAID.write_bytes(gzip.compress("".join(replies).encode(), mtime=0))  # no date in it
    SCORES.write_text(json.dumps(scores, indent=1) + "\n")


def main() -> None:
    """Ask anew, or compare with what is kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ask", metavar="PATH", nargs="?", const="")
    asked = parser.parse_args()
    if asked.ask is not None:
        ask(asked.ask)
    kept, again = json.loads(SCORES.read_text()), scored()
    for name in NAMES:
        values = [one["parts"][name] for one in again]
        known = [value for value in values if value is not None]
        print(f"{name}: {len(known)} of {len(values)}, mean {sum(known) / max(len(known), 1):.3f}")
    print(f"{'the same as' if kept == again else 'NOT the same as'} recorded, bit for bit")
    raise SystemExit(kept != again)


if __name__ == "__main__":
    main()
