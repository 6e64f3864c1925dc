"""What holds for every test.

One thread a process: two that share a core make small tensors a hundred times slower. And a busy
machine is no bug: no property fails because an example took long.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything imports torch

settings.register_profile("any", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any")
