"""The machine at hand: how much memory it has and how fast it multiplies; torch is not asked."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from agentrecipes.recipe.schema import Trainer

TERA, GIGA = 1e12, 1e9
PEAK = {  # dense bf16 operations a second, bytes a second: the makers' data sheets
    "H200": (989 * TERA, 4800 * GIGA),
    "H100": (989 * TERA, 3350 * GIGA),
    "A100": (312 * TERA, 2039 * GIGA),
    "L40S": (362 * TERA, 864 * GIGA),
    "L4": (121 * TERA, 300 * GIGA),
    "A10": (125 * TERA, 600 * GIGA),
    "T4": (65 * TERA, 320 * GIGA),
    "4090": (165 * TERA, 1008 * GIGA),
    "3090": (71 * TERA, 936 * GIGA),
}
REACHED = 0.35  # share of a GPU's peak that training usually reaches
UNKNOWN_GPU = (100 * TERA, 1000 * GIGA)
SIDE = 768  # of the matrices in the measurement


@dataclass(frozen=True, slots=True)
class Device:
    """What one rank trains on: ``Device("gpu", "NVIDIA H100 80GB HBM3", 85 << 30)``."""

    kind: str  # cpu or gpu
    name: str
    bytes: int  # that a rank may use
    threads: int = 1  # of a CPU


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast a device is: ``Speed(7.6e10, 1e10, "measured: 76 GFLOP/s a thread …")``."""

    rate: float  # operations a second in matrix products
    bandwidth: float  # bytes a second
    basis: str  # where both are from


def at_hand(trainer: Trainer) -> Device:
    """The device of each of the trainer's ranks; ranks on a CPU share its memory."""
    gpu = None if trainer.accelerator == "cpu" else _gpu()
    if gpu is not None:
        return gpu
    threads = trainer.threads
    name = f"CPU, {threads} thread{'s' if threads > 1 else ''}"
    return Device("cpu", name, free_memory() // trainer.devices, threads)


def speed_of(device: Device) -> Speed:
    """Measured on a CPU, which takes a tenth of a second; assumed by name for a GPU."""
    if device.kind == "gpu":
        known = next((key for key in PEAK if key in device.name), None)
        rate, bandwidth = PEAK[known] if known else UNKNOWN_GPU
        told = f"the data sheet's peak of {known}" if known else "an assumed 100 TFLOP/s"
        return Speed(rate * REACHED, bandwidth, f"assumed: {REACHED:.0%} of {told}")
    rate, bandwidth = _measured()
    told = f"{rate / 1e9:.0f} GFLOP/s a thread in float32 matrix products"
    return Speed(rate * device.threads, bandwidth, f"measured: {told}")


def _gpu() -> Device | None:
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    command = [program, "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
        name, memory = done.stdout.splitlines()[0].rsplit(",", 1)
    except (OSError, subprocess.SubprocessError, IndexError, ValueError):
        return None
    return Device("gpu", name.strip(), int(float(memory)) << 20)


def _measured() -> tuple[float, float]:
    """Operations a second of one thread, and bytes a second of a copy; a tenth of a second."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    import numpy as np

    one = np.ones((SIDE, SIDE), dtype=np.float32)
    one @ one
    began = time.process_time()
    for _ in range(4):
        one @ one
    spent = max(time.process_time() - began, 1e-6)
    block = np.ones(8 << 20, dtype=np.float32)
    began = time.process_time()
    block.copy()
    copied = max(time.process_time() - began, 1e-6)
    return 4 * 2 * SIDE**3 / spent, 2 * block.nbytes / copied


def free_memory() -> int:
    """Bytes that a new process can use: what is available, or what a container's limit leaves."""
    free = _meminfo()
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        (
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ):
        try:
            most, now = (int(Path(path).read_text(encoding="ascii")) for path in (limit, used))
        except (OSError, ValueError):
            continue
        free = min(free, max(most - now, 0))
    return free


def _meminfo() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    known = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return known["MemAvailable"] * 1024
