"""Commands on a state folder that nobody may write to, or whose disk is full: by the system's own means."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import Done, environment

_SEAL = "mount --bind {folder} {folder} && mount -o remount,ro,bind {folder} && exec {command}"
_FILL = (
    "mount -t tmpfs -o size={size}k tmpfs {folder} && cp -a {copy}/. {folder}/"
    " && {{ cat /dev/zero > {folder}/filler 2>/dev/null; {command}; }}"
)


_CROWD = "mount -t tmpfs -o size=20m,nr_inodes={files} tmpfs {folder} && cp -a {copy}/. {folder}/ && exec {command}"


def _can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    tried = subprocess.run([*_unshare(), "true"], capture_output=True, check=False, timeout=10)
    return tried.returncode == 0


def _unshare() -> list[str]:
    # Whoever is not root becomes so in a namespace of his own, where mounts are his to make.
    return ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]


needs_mounts = pytest.mark.skipif(not _can_mount(), reason="this system does not let the test mount anything")


def on_sealed(folder: Path, *arguments: str) -> Done:
    """Run `failwell` while `folder` is mounted for reading alone."""
    return _run(_SEAL.format(folder=shlex.quote(str(folder)), command=_command(arguments)))


def on_full(folder: Path, copy: Path, *arguments: str, then: tuple[str, ...] = ()) -> Done:
    """Run `failwell` while `folder` is a full disk with what `copy` holds; and `then` once more if that went well."""
    folder.mkdir(exist_ok=True)
    size = 64 + sum(-(-file.stat().st_size // 4096) * 4 + 4 for file in copy.rglob("*"))
    quoted = {"folder": shlex.quote(str(folder)), "copy": shlex.quote(str(copy)), "size": size}
    command = " && ".join(_command(words) for words in (arguments, then) if words)
    return _run(_FILL.format(**quoted, command=command))


def on_crowded(folder: Path, copy: Path, files: int, *arguments: str) -> Done:
    """Run `failwell` while `folder` is a disk with what `copy` holds that has room for so many files."""
    folder.mkdir(exist_ok=True)
    quoted = {"folder": shlex.quote(str(folder)), "copy": shlex.quote(str(copy)), "files": files}
    return _run(_CROWD.format(**quoted, command=_command(arguments)))


def _command(arguments: tuple[str, ...]) -> str:
    return shlex.join([sys.executable, "-m", "failwell", *arguments])


def _run(script: str) -> Done:
    done = subprocess.run(
        [*_unshare(), "sh", "-c", script],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
        env=environment(),
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())
