"""Where the data files that travel with the package are."""

from __future__ import annotations

from pathlib import Path


def folder() -> Path:
    """Inside an installed package, or beside the recipes of a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "_recipes" / "data"
    return installed if installed.is_dir() else package.parents[1] / "recipes" / "data"
