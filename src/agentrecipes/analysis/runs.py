"""The runs in a folder, from their summaries alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def runs(runs_dir: Path) -> list[dict[str, Any]]:
    """What `agentrecipes runs` lists, newest first; empty where nothing has run.

    Keys: run, dir, status, recipe_hash, seed, profile, wall_seconds, metric, value (of the
    summary's last evaluation). A run without a summary goes on or was killed: "unfinished".
    """
    if not runs_dir.is_dir():
        return []
    folders = [path for path in runs_dir.iterdir() if (path / "recipe.yaml").is_file()]
    return [_listed(path) for path in sorted(folders, key=_age, reverse=True)]


def _age(folder: Path) -> tuple[float, str]:
    return (folder / "recipe.yaml").stat().st_mtime, folder.name


def _listed(folder: Path) -> dict[str, Any]:
    summary = _summary(folder)
    evaluations = summary.get("evaluations") or [{}]
    keys = ("recipe_hash", "seed", "profile", "wall_seconds")
    return {
        "run": folder.name,
        "dir": str(folder),
        "status": summary.get("status", "unfinished"),
        **{key: summary.get(key) for key in keys},
        "metric": evaluations[-1].get("metric"),
        "value": evaluations[-1].get("value"),
    }


def _summary(folder: Path) -> dict[str, Any]:
    try:
        data = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        return {"status": "unreadable"}
    return data if isinstance(data, dict) else {"status": "unreadable"}
