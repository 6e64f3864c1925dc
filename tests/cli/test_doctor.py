from __future__ import annotations

import json

from agentrecipes.cli.doctor import Need, advice, needs


def test_every_dependency_of_the_base_is_named_with_what_is_installed(command):
    found = {need.package.lower(): need for need in needs() if not need.extra}
    assert found["torch"].installed
    assert found["duckdb"].wanted
    assert found["lazy-loader" if "lazy-loader" in found else "lazy_loader"].installed
    done = command("doctor", "--json")
    told = json.loads(done.out)
    assert (done.code, told["ok"]) == (0, True)
    assert {package["package"].lower() for package in told["packages"]} >= set(found)


def test_what_is_missing_comes_with_the_command_that_installs_it():
    found = [
        Need("", "torch", ">=2", None),
        Need("vllm", "vllm", ">=0.32", None),
        Need("dev", "pytest", "", "9"),
    ]
    assert advice(found) == [
        "base: torch missing. pip install 'agentrecipes'",
        "vllm: vllm missing. pip install 'agentrecipes[vllm]'",
    ]


def test_doctor_prints_one_line_per_package(command):
    done = command("doctor")
    assert done.code == 0
    assert any(line.startswith("pydantic ") for line in done.out.splitlines())
