"""Whether a process that was noted down is still there."""

from __future__ import annotations

import os
import subprocess
import sys

from agentrecipes.sweeps.processes import born, is_alive


def test_a_process_is_known_by_its_number_and_its_birth():
    mine = os.getpid()
    assert is_alive(mine, born(mine))
    assert not is_alive(mine, "1")  # the number was given out again


def test_a_process_that_ended_is_gone_even_before_its_parent_has_looked():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    since = born(child.pid)
    assert is_alive(child.pid, since)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(child.pid, since)
    child.communicate()
    assert not is_alive(child.pid, since)
