"""A program of its own: runs one Python program where it can reach nothing. Standard library only.

    python -I -S jail.py '{"work": …, "memory": …, …}' < program

Outside, this process watches: it ends everything when memory or time are used up, and leaves no
descendant behind. Inside, the program has its own user, process, network and mount namespaces
(bubblewrap's, or our own), rights to read Python and to write one small folder (Landlock), limits
on memory, CPU, files and processes, and no environment. Each layer is used where the kernel has it;
what was used is told on the descriptor ``status``.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import struct
import sys
import time
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
NOBODY = 65534
TICK_SECONDS = 0.02
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38
NEW_MOUNTS = 0x00020000
NEW_SPACES = NEW_MOUNTS | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
READ = 0b1101  # execute, read a file, read a folder
OF_A_FILE = 0b111 | 1 << 14 | 1 << 15  # execute, write, read, truncate, ioctl


def main(config: dict[str, Any]) -> None:
    """Watch from outside, or be inside already."""
    if config.get("inside"):
        _program(config, sys.stdin.buffer.read())
    source = sys.stdin.buffer.read()
    if os.geteuid() == 0 and _seen_by_others(config["readable"]):
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    config["layers"] = layers = []
    if config["bubblewrap"]:
        layers.append("bubblewrap")
        child = _bubblewrapped(config, source)
    else:
        layers += ["namespaces"] * _own_spaces()
        child = os.fork()
        if child == 0:
            _first(config, source)
    found = _watch(child, config)
    os.write(config["status"], json.dumps({**found, "layers": layers}).encode())


# Outside: watching.


def _watch(child: int, config: dict[str, Any]) -> dict[str, Any]:
    """Wait for the end, or bring it about; how it came."""
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: asked.append(number))
    reason = ""
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if asked:
            reason = "stopped"
        elif _memory() > config["memory"]:
            reason = "memory"
        if reason:
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            break
        time.sleep(TICK_SECONDS)
    _end_the_rest()
    return {"code": os.waitstatus_to_exitcode(status), "reason": reason}


def _end_the_rest() -> None:
    """Kill whoever is left, again and again, until nobody is."""
    while True:
        for each in _descendants():
            try:
                os.kill(each, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _descendants() -> dict[int, int]:
    """Process id → resident bytes of everybody below this process."""
    below: dict[int, list[tuple[int, int]]] = {}
    page = resource.getpagesize()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            below.setdefault(int(fields[1]), []).append((int(name), int(fields[21]) * page))
    found: dict[int, int] = {}
    waiting = [os.getpid()]
    while waiting:
        for child, size in below.get(waiting.pop(), ()):
            found[child] = size
            waiting.append(child)
    return found


def _memory() -> int:
    return sum(_descendants().values())


# On the way in.


def _seen_by_others(readable: list[str]) -> bool:
    """Make Python's folders reachable for a user without rights, also those below /root.

    In a mount namespace of our own an empty folder hides the one that lets nobody in, and what is
    needed of it is bound into that at its own path.
    """
    hidden = {path: closed for path in readable if (closed := _closed(path)) is not None}
    if not hidden:
        return True
    if LIBC.unshare(NEW_MOUNTS) != 0:
        return False
    LIBC.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    places = {path: os.open(path, os.O_PATH) for path in hidden}
    for closed in set(hidden.values()):
        if LIBC.mount(b"tmpfs", closed.encode(), b"tmpfs", MS_NOSUID | MS_NODEV, b"mode=0755"):
            return False
    for path, place in sorted(places.items()):
        folder = os.path.isdir(f"/proc/self/fd/{place}")
        os.makedirs(path if folder else os.path.dirname(path), exist_ok=True)
        if not folder:
            open(path, "wb").close()
        if LIBC.mount(f"/proc/self/fd/{place}".encode(), path.encode(), None, MS_BIND, None):
            return False
        os.close(place)
    return True


def _closed(path: str) -> str | None:
    """The first folder on the way to `path` that others may not enter."""
    parts = path.split("/")
    for end in range(2, len(parts)):
        folder = "/".join(parts[:end])
        if not os.stat(folder).st_mode & 0o001:
            return folder
    return None


def _bubblewrapped(config: dict[str, Any], source: bytes) -> int:  # noqa: RET503 - execve
    """Start bubblewrap with this program inside; the process id."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(reading)
        try:
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(source)
        except BrokenPipeError:  # it did not start; its words are among what was printed
            return child
        return child
    os.close(writing)
    os.dup2(reading, 0)
    os.set_inheritable(config["status"], False)
    bound = [word for path in config["readable"] for word in ("--ro-bind", path, path)]
    size = ["--size", str(config["files"])]
    inside = json.dumps({**config, "inside": True})
    words = ["--unshare-all", "--unshare-user", "--disable-userns", "--uid", "1000"]
    words += ["--die-with-parent", "--clearenv", "--new-session"]
    words += [*bound, "--proc", "/proc", "--dev", "/dev", *size, "--tmpfs", config["work"]]
    words += ["--", config["python"], "-I", "-S", config["jail"], inside]
    os.execve(config["bubblewrap"], ["bwrap", *words], {})


def _own_spaces() -> bool:
    """Leave the machine's namespaces for our own; whether the kernel let us."""
    user, group = os.geteuid(), os.getegid()
    if LIBC.unshare(NEW_SPACES) != 0:
        return False
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"1000 {user} 1"),
        ("gid_map", f"1000 {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    return True


def _first(config: dict[str, Any], source: bytes) -> None:
    """The first process of the new namespaces: starts the program, and ends with it."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.set_inheritable(config["status"], False)
    if config["layers"]:
        LIBC.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None)
        options = f"size={config['files']},mode=0700".encode()
        LIBC.mount(b"tmpfs", config["work"].encode(), b"tmpfs", MS_NOSUID | MS_NODEV, options)
    program = os.fork()
    if program == 0:
        _program(config, source)
    while True:
        done, status = os.waitpid(-1, 0)
        if done == program:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


# Inside.


def _program(config: dict[str, Any], source: bytes) -> None:
    """Become the program."""
    os.chdir(config["work"])
    with open("program.py", "wb") as file:
        file.write(source)
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    for what, most in (
        (resource.RLIMIT_AS, config["memory"]),
        (resource.RLIMIT_FSIZE, config["files"]),
        (resource.RLIMIT_CPU, config["seconds"]),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_STACK, 64 << 20),
    ):
        resource.setrlimit(what, (most, most))
    if config["layers"]:  # counted within the new user namespace; else it would count everybody
        resource.setrlimit(resource.RLIMIT_NPROC, (config["processes"], config["processes"]))
    _landlocked(config["readable"], config["work"])
    environment = {"HOME": config["work"], "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    environment |= {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    os.execve(config["python"], [config["python"], "-s", "-P", "-u", "program.py"], environment)


def _landlocked(readable: list[str], work: str) -> None:
    """Let this process read `readable`, write `work`, and do nothing else with files or TCP."""
    version = LIBC.syscall(LANDLOCK_CREATE, None, 0, 1)
    if version < 1:
        return
    everything = (1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)) - 1
    attributes = struct.pack("QQQ", everything, 3, 3)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = LIBC.syscall(LANDLOCK_CREATE, attributes[:size], size, 0)
    if ruleset < 0:
        return
    devices = [(f"/dev/{name}", 0b111) for name in ("null", "zero", "random", "urandom")]
    for path, rights in [*((path, READ) for path in readable), (work, everything), *devices]:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        allowed = rights & everything
        if not os.path.isdir(path):
            allowed &= OF_A_FILE
        LIBC.syscall(LANDLOCK_ADD, ruleset, 1, struct.pack("=Qi", allowed, place), 0)
        os.close(place)
    LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    LIBC.syscall(LANDLOCK_RESTRICT, ruleset, 0)
    os.close(ruleset)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
