"""Files below one folder: read, write, list. No symbolic link is followed, in any part of a path.

Every part of a path is opened relative to the one before, so nothing can be put in its place between a check and its use.
"""

import os
import stat
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from failwell.agents.tools.tool import Tool, ToolContext
from failwell.errors.faults import ToolTerminal

_MOST_BYTES = 8 * 1024 * 1024
_MOST_ENTRIES = 1_000
_SNIFFED = 8_192
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PROTECTED = frozenset(
    {
        ".git", ".failwell", ".ssh", ".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zshenv",
        ".zprofile", ".zlogin", ".gitconfig", ".gitmodules", "authorized_keys", ".aws", ".gnupg", ".netrc",
        ".pgpass", ".npmrc", ".pypirc", ".docker", ".kube", ".azure", ".git-credentials", "id_rsa", "id_dsa",
        "id_ecdsa", "id_ed25519",
    }
)  # fmt: skip
"""Names that hold credentials or are run by programs: neither read nor written."""
_PATH = {"path": {"type": "string", "description": "relative to the working folder"}}


def read_file(folder: Path, root: str = ".") -> Tool:
    """A tool that reads text files below `root`, which is relative to `folder` and reached without a symbolic link."""
    top = _top(folder, root)

    async def run(arguments: Mapping[str, Any], _context: ToolContext) -> str:
        with _parent(top, arguments["path"]) as (parent, name):
            return _read(parent, name)

    return Tool(
        name="read_file",
        description="Read a text file.",
        parameters=_schema(_PATH, "path"),
        run=run,
        effect="read",
        check=_check,
    )


def list_directory(folder: Path, root: str = ".") -> Tool:
    """A tool that lists a folder at or below `root`."""
    top = _top(folder, root)

    async def run(arguments: Mapping[str, Any], _context: ToolContext) -> list[dict[str, Any]]:
        with _folder(top, _parts(arguments.get("path", "."))) as listed:
            return _entries(listed)

    return Tool(
        name="list_directory",
        description="List the files and folders of a folder.",
        parameters=_schema(_PATH),
        run=run,
        effect="read",
        check=_check,
    )


def write_file(folder: Path, root: str = ".") -> Tool:
    """A tool that writes whole text files below `root`, in folders that exist."""
    top = _top(folder, root)

    async def run(arguments: Mapping[str, Any], _context: ToolContext) -> dict[str, Any]:
        content = str(arguments["content"]).encode("utf-8", "replace")
        with _parent(top, arguments["path"]) as (parent, name):
            _replace(parent, name, content)
        return {"written_bytes": len(content)}

    return Tool(
        name="write_file",
        description="Write a text file, as a whole.",
        parameters=_schema({**_PATH, "content": {"type": "string"}}, "path", "content"),
        run=run,
        effect="idempotent",
        approval="ask",
        check=lambda arguments, context: (
            _check(arguments, context) or _check_writable(folder / root, arguments, context)
        ),
    )


def _schema(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def _check(arguments: Mapping[str, Any], _context: ToolContext) -> str | None:
    path = str(arguments.get("path", "."))
    if path.startswith(("/", "\\", "~")) or "\0" in path or (len(path) > 1 and path[1] == ":"):
        return "path_outside"
    for part in path.replace("\\", "/").split("/"):
        if part == "..":
            return "path_outside"
        name = _folded(part)
        if name in _PROTECTED or name.startswith(".env"):
            return "path_protected"
    return None


def _check_writable(root: Path, arguments: Mapping[str, Any], context: ToolContext) -> str | None:
    """A model must not change what it runs in: it would grant itself tools, or run code."""
    path = os.path.realpath(root / "/".join(_parts(str(arguments.get("path", "")).replace("\\", "/"))))
    # Some file systems take names without regard to case.
    folded = path.casefold()
    for protected in context.protected():
        other = protected.casefold()
        if folded == other or folded.startswith(f"{other}/"):
            return "path_protected"
    return None


def _folded(part: str) -> str:
    """A name as a lenient file system would take it: without case, trailing dots and spaces, and alternate streams."""
    name = part.partition(":")[0]
    return name.rstrip(". ").casefold() if name.strip(".") else name


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _top(folder: Path, root: str) -> tuple[Path, list[str]]:
    """Where every path begins: a folder that is opened as it is, and the names from there to the root."""
    path = Path(root)
    return (path.parent, [path.name]) if path.is_absolute() and path.name else (folder, _parts(root))


@contextmanager
def _folder(top: tuple[Path, list[str]], parts: list[str]) -> Generator[int]:
    """The descriptor of a folder, reached without a symbolic link; the root is not one either."""
    start, below = top
    descriptor = os.open(start, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in (*below, *parts):
            try:
                inner = os.open(part, _DIRECTORY, dir_fd=descriptor)
            except OSError as error:
                raise _refused(error) from error
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _parent(top: tuple[Path, list[str]], path: str) -> Generator[tuple[int, str]]:
    parts = _parts(path)
    if not parts:
        raise _denied("path_outside")
    with _folder(top, parts[:-1]) as folder:
        yield folder, parts[-1]


def _read(folder: int, name: str) -> str:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        raise _refused(error) from error
    with os.fdopen(descriptor, "rb") as file:
        details = os.fstat(descriptor)
        if not stat.S_ISREG(details.st_mode):
            raise _denied("not_a_file")
        if details.st_nlink > 1:
            raise _denied("hard_link")
        if details.st_size > _MOST_BYTES:
            raise _unfit("the file is larger than 8 MiB")
        content = file.read(_MOST_BYTES)
    if b"\0" in content[:_SNIFFED]:
        raise _unfit("the file is not text")
    return content.decode("utf-8", "replace")


def _entries(folder: int) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    with os.scandir(folder) as found:
        for entry in found:
            kind = "folder" if entry.is_dir(follow_symlinks=False) else "file"
            entries.append({"name": entry.name, "type": "link" if entry.is_symlink() else kind})
            if len(entries) == _MOST_ENTRIES:
                break
    return sorted(entries, key=lambda entry: entry["name"])


def _replace(folder: int, name: str, content: bytes) -> None:
    """Write a file as a whole. What is no ordinary file of one name is refused."""
    try:
        there = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        mode = 0o600
    else:
        if not stat.S_ISREG(there.st_mode):
            raise _denied("not_a_file")
        if there.st_nlink > 1:
            raise _denied("hard_link")
        mode = stat.S_IMODE(there.st_mode)
    draft = f".{name[:100]}-{os.urandom(6).hex()}"
    descriptor = os.open(
        draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=folder
    )
    with ExitStack() as unfinished:
        # Whatever ends the write, an interrupt too, leaves no draft.
        unfinished.callback(os.unlink, draft, dir_fd=folder)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        unfinished.pop_all()


def _refused(error: OSError) -> Exception:
    from errno import ELOOP, ENOTDIR

    if error.errno in (ELOOP, ENOTDIR):
        return _denied("symbolic_link")
    if isinstance(error, FileNotFoundError):
        return _unfit("there is no such file or folder")
    return error


def _denied(reason: str) -> ToolTerminal:
    return ToolTerminal(
        kind="tool.denied",
        message=f"the path may not be used: {reason}",
        details={"reason": reason},
        caller_facing=True,
    )


def _unfit(reason: str) -> ToolTerminal:
    return ToolTerminal(
        kind="tool.input_invalid",
        message=reason,
        details={"reason": reason, "parameter": "path"},
        fields_invalid=["path"],
        caller_facing=True,
    )
