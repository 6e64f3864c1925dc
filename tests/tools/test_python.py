"""The python tool: what a program prints comes back, and nothing that it tries gets out."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
import threading
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.tools.hostile import PROGRAMS

from agentrecipes.components import build
from agentrecipes.environments.calling import Desk, Limits
from agentrecipes.records import Call
from agentrecipes.tools.python import Python

SECRET = "do-not-tell-anybody"
ISOLATIONS = ["namespaces", *(["bubblewrap"] if shutil.which("bwrap") else [])]


def run(code: str, **fields: object):
    return asyncio.run(Python(**fields).call({"code": code}))


def left_over() -> list[str]:
    """Processes that still run a program, anywhere on this machine."""
    found = []
    for name in os.listdir("/proc"):
        try:
            words = Path(f"/proc/{name}/cmdline").read_bytes() if name.isdigit() else b""
        except OSError:
            continue
        if b"program.py" in words and b"treasure" not in words:
            found.append(name)
    return found


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_what_it_prints_is_the_result(isolation):
    found = run("import math\nprint(math.comb(10, 3))\nprint('ö')", isolation=isolation)
    assert (found.text, found.error) == ("120\nö\n", None)


def test_a_traceback_is_the_error_and_names_the_program_alone():
    found = run("a = 1\nprint('so far')\na / 0\n")
    assert found.text == ""
    assert found.error.startswith('so far\nTraceback (most recent call last):\n  File "program.py"')
    assert found.error.endswith("ZeroDivisionError: division by zero")


def test_the_same_program_says_the_same_each_time():
    code = (
        "print({'b', 'a', 'c'}, hash('x')); import os; print(sorted(os.listdir('.')), os.getpid())"
    )
    assert run(code) == run(code)


def test_a_small_file_can_be_written_and_is_gone_afterwards():
    assert run("open('x', 'w').write('kept'); print(open('x').read())").text == "kept\n"
    assert "x" not in run("import os; print(os.listdir('.'))").text


def test_installed_packages_can_be_imported():
    assert run("import numpy; print(numpy.arange(4).sum())", seconds=60.0).text == "6\n"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("while True: pass", "the program took longer than 0.5 s"),
        ("print('x' * 5000)", "the program printed more than 1000 bytes; it had printed: xxx"),
        ("import os; os._exit(3)", "the program ended with code 3"),
        ("import os; os.abort()", "the program ended with code 134"),
        ("", None),
    ],
)
def test_what_ended_it_is_told(code, why):
    seconds = 0.5 if "while" in code else 60.0
    error = run(code, seconds=seconds, output_bytes=1000).error
    assert error is None if why is None else error.startswith(why)


def test_all_its_processes_share_one_allowance_of_memory():
    found = run(PROGRAMS["memory_of_many"], seconds=60.0, memory_mib=128)
    assert found.error == "the program used more than 128 MiB"


def test_a_call_that_is_given_up_ends_the_program():
    desk = Desk({"python": Python(seconds=60.0)}, Limits(seconds=0.5))
    call = Call("python", {"code": "import time; time.sleep(60)"})
    [found] = asyncio.run(desk.answer([call]))
    assert found.error == "no result within 0.5 s"
    assert left_over() == []


def test_bubblewrap_can_be_required(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    part = build("tool", {"name": "python", "isolation": "bubblewrap"})
    [problem] = part.rules(None)
    assert (problem.code, problem.path) == ("missing_program", "isolation")
    assert list(build("tool", {"name": "python"}).rules(None)) == []
    with pytest.raises(ValidationError, match="'best', 'namespaces' or 'bubblewrap'"):
        build("tool", {"name": "python", "isolation": "none"})


@pytest.fixture(scope="module", params=ISOLATIONS)
def attempts(request, tmp_path_factory):
    """What became of every hostile program, run side by side; and of what they were after."""
    folder = tmp_path_factory.mktemp("treasure")
    treasure = folder / "treasure"
    treasure.write_text(SECRET)
    treasure.chmod(0o666)
    for path in (folder, *folder.parents):
        if path.stat().st_uid == os.getuid() and str(path).startswith("/tmp/"):
            path.chmod(path.stat().st_mode | 0o055)  # the folders are no protection
    visits: list[bytes] = []
    server = socket.create_server(("127.0.0.1", 0))
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(server.getsockname())
    datagrams.settimeout(0.1)

    def listen() -> None:
        while True:
            try:
                server.accept()
            except OSError:
                return
            visits.append(b"connected")

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    at = {"treasure": treasure, "port": server.getsockname()[1], "pid": os.getpid()}
    os.environ["SECRET"] = SECRET
    try:
        found = asyncio.run(every(at, request.param))
    finally:
        del os.environ["SECRET"]
    with contextlib.suppress(TimeoutError):
        visits.append(datagrams.recv(100))
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    datagrams.close()
    thread.join(10)
    return found, treasure, visits


async def every(at, isolation):
    """Each program's result, at most eight of them at once."""
    tool = Python(seconds=6.0, memory_mib=256, files_mib=8, isolation=isolation)
    gate = asyncio.Semaphore(8)

    async def one(code: str) -> object:
        for name, value in at.items():
            code = code.replace(f"{{{name}}}", str(value))
        async with gate:
            return await tool.call({"code": code})

    results = await asyncio.gather(*(one(code) for code in PROGRAMS.values()))
    return dict(zip(PROGRAMS, results, strict=True))


def test_there_are_fifty_of_them():
    assert len(PROGRAMS) == 50


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_hostile_program_gets_nothing(attempts, name):
    found, _, _ = attempts
    said = f"{found[name].text} {found[name].error}"
    assert SECRET not in said
    assert "root:x:0" not in said
    assert len(said) < 12_000


def test_nothing_outside_was_lost_changed_or_reached(attempts):
    _, treasure, visits = attempts
    assert treasure.read_text() == SECRET
    assert oct(treasure.stat().st_mode)[-3:] == "666"
    assert [path.name for path in treasure.parent.iterdir()] == ["treasure"]
    assert not Path("/tmp/left-behind-by-a-program").exists()
    assert visits == []
    assert not Path(json.__file__).read_text().endswith("# mine")


def test_nobody_stayed_behind(attempts):
    assert left_over() == []
    assert [path for path in Path("/tmp").glob("program-*") if path.is_dir()] == []
