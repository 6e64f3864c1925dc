"""The first signal asks, the second Ctrl-C interrupts, and handlers come back."""

from __future__ import annotations

import signal
import threading

import pytest

from agentrecipes.training.signals import StopFlag


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_the_first_signal_only_asks(number):
    with StopFlag() as flag:
        assert not flag.asked
        signal.raise_signal(number)
        assert flag.asked


def test_a_second_ctrl_c_interrupts():
    with StopFlag() as flag:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)  # whoever ends processes may insist without harm
        assert flag.asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_the_handlers_before_come_back_also_after_an_error():
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
    before = [signal.getsignal(number) for number in numbers]

    def broken() -> None:
        with StopFlag():
            assert [signal.getsignal(number) for number in numbers] != before
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        broken()
    assert [signal.getsignal(number) for number in numbers] == before


def test_outside_the_main_thread_it_is_a_plain_flag():
    found = []

    def enter() -> None:
        with StopFlag() as flag:
            found.append((flag.asked, signal.getsignal(signal.SIGTERM)))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert found == [(False, before)]
