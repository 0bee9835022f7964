"""Completion, asked of the real shells."""

import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from failwell.cli.commands import COMMANDS
from failwell.errors.kind_registry import kinds
from tests.cli.running import failwell

Ask = Callable[[list[str], Path], set[str]]
PROVIDER_R = [kind.name for kind in kinds() if kind.name.startswith("provider.r")]

CASES: list[tuple[list[str], set[str]]] = [
    ([""], set(COMMANDS)),
    (["ex"], {"explain"}),
    (["explain", "provider.r"], set(PROVIDER_R)),
    (["--error-format", ""], {"text", "json", "markdown"}),
    (["--color", "never", "describe", "--as", "re"], {"report", "reply"}),
    (["describe", "--view", "mo"], {"model"}),
    (["kinds", "--category", "trans"], {"transient"}),
    (["schema", ""], {"report", "problem", "workflow"}),
    (["schema", "--format", ""], {"json"}),
    (["completion", ""], {"bash", "zsh", "fish"}),
    (["describe", "--provider", ""], set()),
    (["kinds", "--pre"], {"--prefix"}),
    (["jobs", "ca"], {"cancel"}),
    (["runs", ""], {action.name for action in COMMANDS["runs"].actions}),
    (["runs", "list", "--status", "inter"], {"interrupted"}),
    (["runs", "--stat"], {"--status"}),
    (["jobs", "prune", "--old"], {"--older-than"}),
    (["jobs", "cancel", "--old"], set()),
]


@cache
def printed(shell: str) -> str:
    done = failwell("completion", shell)
    assert (done.code, done.err) == (0, "")
    return done.out


def a_script(shell: str, folder: Path) -> Path:
    path = folder / f"failwell.{shell}"
    path.write_text(printed(shell))
    return path


def ask(command: list[str], folder: Path) -> set[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    assert done.stderr == ""
    return {line.split("\t")[0] for line in done.stdout.splitlines()} - {""}


def ask_bash(words: list[str], folder: Path) -> set[str]:
    script = (
        f'source {a_script("bash", folder)}; COMP_WORDS=(failwell "$@"); COMP_CWORD=$#; '
        "_failwell; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    return ask(["bash", "--norc", "-u", "-c", script, "bash", *words], folder)


def ask_zsh(words: list[str], folder: Path) -> set[str]:
    # zsh itself keeps what fits the word; here the stand-in for `compadd` does.
    script = (
        "compdef() {}; _files() { print -l -- *(N) }; "
        "compadd() { shift; print -l -- ${(M)@:#${words[CURRENT]}*} }; "
        f'source {a_script("zsh", folder)}; words=(failwell "$@"); CURRENT=$#words; _failwell'
    )
    return ask(["zsh", "-f", "-c", script, "zsh", *words], folder)


def ask_fish(words: list[str], folder: Path) -> set[str]:
    typed = " ".join(["failwell", *words])
    return ask(
        ["fish", "--no-config", "-c", f"source {a_script('fish', folder)}; complete -C '{typed}'"], folder
    )


SHELLS = [
    pytest.param(
        ask, marks=pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed"), id=name
    )
    for name, ask in (("bash", ask_bash), ("zsh", ask_zsh), ("fish", ask_fish))
]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("words", "expected"), CASES, ids=[" ".join(words) for words, _ in CASES])
def test_the_shell_offers_what_may_follow(
    shell: Ask, words: list[str], expected: set[str], tmp_path: Path
) -> None:
    offered = shell(words, tmp_path)

    assert offered == expected


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_offers_files_to_describe(shell: Ask, tmp_path: Path) -> None:
    (tmp_path / "saved.json").write_text("{}")

    offered = shell(["describe", "sav"], tmp_path)

    assert "saved.json" in offered


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_offers_every_option_of_a_command(shell: Ask, tmp_path: Path) -> None:
    offered = shell(["describe", "--"], tmp_path)

    assert {
        "--as",
        "--view",
        "--format",
        "--json",
        "--error-format",
        "--agent",
        "--color",
        "--help",
    } <= offered


def test_bash_completes_behind_an_equals_sign(tmp_path: Path) -> None:
    assert ask_bash(["kinds", "--format", "=", "js"], tmp_path) == {"json"}
    assert ask_bash(["kinds", "--format", "="], tmp_path) == {"text", "json", "markdown"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_script_holds_every_command_and_kind(shell: str) -> None:
    script = failwell("completion", shell).out

    assert all(command in script for command in COMMANDS)
    assert all(kind.name in script for kind in kinds())
