"""Which server a process starts and asks."""

from collections.abc import Mapping

from agentrecipes.engines.vllm_runtime import shares


def test_servers_are_dealt_like_cards():
    assert [shares.dealt("abc", own, 2) for own in (0, 1)] == [["a", "c"], ["b"]]


def test_processes_share_where_there_are_too_few():
    assert [shares.dealt("ab", own, 5) for own in range(5)] == [
        *(["a"], ["b"], ["a"], ["b"], ["a"])
    ]


def test_a_process_on_its_own_starts_and_asks_all():
    begun = []

    def start(entries: Mapping[int, str]) -> list[str]:
        begun.append(dict(entries))
        return [f"http://{entry}" for entry in entries.values()]

    assert shares.started(("x", "y"), start) == ["http://x", "http://y"]
    assert begun == [{0: "x", 1: "y"}]
    assert shares.asked(["http://z"]) == ["http://z"]
