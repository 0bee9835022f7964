"""What the commands and runtimes of this machine really print when they fail is described as what happened."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from failwell.adapters.log_records.pasted import describe_pasted

REFUSED = "provider.connection"
QUICK: dict[str, tuple[list[str], str]] = {
    "curl": (["curl", "-sS", "http://127.0.0.1:9/"], REFUSED),
    "curl with an unknown host": (["curl", "-sS", "http://nowhere.invalid/"], REFUSED),
    "git": (["git", "clone", "http://127.0.0.1:9/x", "clone"], REFUSED),
    "git outside a repository": (["git", "log"], "validation.input_invalid"),
    "ssh": (["ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-p", "9", "127.0.0.1", "true"], REFUSED),
    "a missing command": (["bash", "-c", "failwell-no-such-command"], "internal.spawn_failed"),
    "a missing script": (["sh", "-c", "./no-such-script"], "internal.spawn_failed"),
    "a missing file": (["cat", "/no/such/file"], "internal.file_unavailable"),
    "a crash": (["bash", "-c", "ulimit -c 0; bash -c 'kill -SEGV $$'; true"], "internal.bug"),
    "node without a peer": (["node", "-e", "require('net').connect(9, '127.0.0.1')"], REFUSED),
    "node with an unknown host": (["node", "-e", "require('http').get('http://nowhere.invalid/')"], REFUSED),
    "node without a module": (["node", "-e", "require('no-such-module')"], "extension.dependency_missing"),
    "node without a file": (["node", "-e", "require('fs').readFileSync('/no/such/file')"], "internal.file_unavailable"),
    "node with a bug": (["node", "-e", "null.x"], "internal.bug"),
    "node with a cause": (
        ["node", "-e", "fetch('http://127.0.0.1:59999/')"],
        REFUSED,
    ),
    "psql": (["psql", "-h", "127.0.0.1", "-p", "9", "-U", "x", "x"], REFUSED),
    "redis-cli": (["redis-cli", "-p", "9", "ping"], REFUSED),
    "docker": (["docker", "-H", "tcp://127.0.0.1:9", "ps"], "validation.config_invalid"),
}  # fmt: skip
SLOW: dict[str, tuple[list[str], str]] = {
    "kubectl": (["kubectl", "--server", "http://127.0.0.1:9", "get", "pods"], REFUSED),
    "npm": (["npm", "view", "x", "--registry", "http://127.0.0.1:9", "--fetch-retries", "0"], REFUSED),
}
JAVA = """\
public class Refused {
    public static void main(String[] args) {
        try {
            new java.net.Socket("127.0.0.1", 9);
        } catch (java.io.IOException error) {
            throw new RuntimeException("call failed", error);
        }
    }
}
"""
RUST = 'fn main() { std::net::TcpStream::connect("127.0.0.1:9").unwrap(); }\n'


def printed(command: list[str], folder: Path) -> str:
    """What a failing command prints, on either stream."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
        env={**os.environ, "LC_ALL": "C", "HOME": str(folder), "GIT_CEILING_DIRECTORIES": str(folder.parent), "GIT_TERMINAL_PROMPT": "0"},
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", QUICK)
def test_the_output_of_a_failing_command_says_what_happened(name: str, tmp_path: Path) -> None:
    command, kind = QUICK[name]

    report = describe_pasted(printed(command, tmp_path), origin="call")

    assert report.kind == kind


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_the_output_of_a_slow_command_says_what_happened(name: str, tmp_path: Path) -> None:
    command, kind = SLOW[name]

    assert describe_pasted(printed(command, tmp_path), origin="call").kind == kind


@pytest.mark.slow
def test_a_java_program_prints_a_chain_whose_root_cause_decides(tmp_path: Path) -> None:
    (tmp_path / "Refused.java").write_text(JAVA)

    report = describe_pasted(printed(["java", "Refused.java"], tmp_path))

    assert (report.kind, report.error_type) == (REFUSED, "RuntimeException")
    assert [cause.type for cause in report.causes] == ["ConnectException"]


@pytest.mark.slow
def test_a_rust_program_panics_with_the_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "refused.rs").write_text(RUST)
    # The proxy of rustup is there without a compiler where no toolchain was chosen.
    if (
        shutil.which("rustc") is None
        or subprocess.run(["rustc", "--version"], check=False, capture_output=True).returncode
    ):
        pytest.skip("rustc is not installed")
    subprocess.run(["rustc", "refused.rs"], cwd=tmp_path, check=True, capture_output=True, timeout=120)

    assert describe_pasted(printed([str(tmp_path / "refused")], tmp_path)).kind == REFUSED
