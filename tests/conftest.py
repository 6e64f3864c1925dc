"""One thread a process: two that share a core make small tensors a hundred times slower."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything imports torch
