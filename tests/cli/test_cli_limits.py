"""`failwell workers run --memory`: jobs use no more of a shared machine than somebody allowed them."""

from pathlib import Path

import pytest

from tests.cli.running import Done, failwell

MODULE = """
def hold(mb):
    held = bytearray(mb << 20)
    held[::4096] = b"x" * len(held[::4096])
    return mb
"""


@pytest.mark.acceptance("cjm-substrate 44")
def test_a_job_beyond_the_memory_that_jobs_may_use_fails_at_once_with_numbers(tmp_path: Path) -> None:
    def run(*arguments: str) -> Done:
        return failwell(*arguments, "--store", str(tmp_path / "state"))

    (tmp_path / "tools.py").write_text(MODULE)
    (tmp_path / "hold.toml").write_text('name = "hold"\nobject = "tools:hold"\n')
    run("capabilities", "add", str(tmp_path / "hold.toml"))

    first = run("jobs", "submit", "hold", "mb=200", "--wait")
    run("jobs", "submit", "hold", "mb=200")
    ran = run("workers", "run", "--until-empty", "--memory", "150")
    refused = run("jobs", "show", "last", "--json").data
    run("jobs", "submit", "hold", "mb=200")
    run("workers", "run", "--until-empty", "--memory", "300", "--disk", "500", "--gpu-memory", "1000")
    allowed = run("jobs", "show", "last", "--json").data

    assert (first.code, first.out, ran.code) == (0, "200\n", 0)
    assert (refused["status"], refused["error"]["kind"]) == ("failed", "resource.never_fits")
    short = refused["error"]["resource_shortfall"]
    assert (short["resource"], short["available"]) == ("system_ram_mb", 150)
    assert 200 <= short["needed"] < 240
    assert (allowed["status"], allowed["result"]) == ("completed", 200)
