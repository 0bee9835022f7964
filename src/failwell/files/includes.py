"""A YAML file and everything it includes with `!file`, as one tree."""

import os
from collections.abc import Mapping
from hashlib import sha256

from failwell.errors.frozen import frozen
from failwell.files.disk import FileText, Refused, is_inside, kind_of, project_of, read
from failwell.files.env_variables import expand
from failwell.files.item_tree import Item, Path
from failwell.files.mistakes import MistakeLog
from failwell.files.yaml_reader import compose

MAX_FILES = 1_000
MAX_NESTED = 20
"""Levels of includes."""
MAX_BYTES = 16 * 1024 * 1024
"""Of all files together."""
_YAML = (".yaml", ".yml", ".json")


@frozen
class Loaded:
    """A file with its includes. Mistakes are in the log of the caller."""

    root: Item | None
    files: Mapping[str, tuple[str, str]]
    """Path → digest and text as on disk, the root first."""
    digest: str


class Loader:
    """Reads one file. Includes must lie in the folder `project`; `environ` has the variables."""

    def __init__(
        self,
        log: MistakeLog,
        environ: Mapping[str, str],
        *,
        project: str | None = None,
        pure: bool = False,
    ) -> None:
        self.log = log
        self.environ = environ
        self.project = project
        """`None` allows includes from anywhere."""
        self.pure = pure
        self.files: dict[str, tuple[str, str]] = {}
        self.size = 0
        self._reading: list[str] = []
        """Real paths of the files that are being read, to detect cycles."""
        self._trees: dict[str, Item] = {}

    def root(self, content: FileText, file: str) -> Loaded:
        """The tree of the root file, whose content has been read."""
        self.files[file] = (content.digest, content.text)
        self._reading.append(os.path.realpath(file))
        tree = self._tree(content.text, file, None)
        self._reading.pop()
        return Loaded(root=tree, files=self.files, digest=self._digest(file))

    def _digest(self, root: str) -> str:
        """One digest for the root and its includes. It does not depend on the location of the folder."""
        root_digest, _ = self.files[root]
        if len(self.files) == 1:
            return root_digest
        folder = os.path.dirname(root)  # noqa: PTH120
        lines = [root_digest]
        for file, (digest, _) in sorted(self.files.items()):
            if file != root:
                lines.append(f"{digest}  {os.path.relpath(file, folder or '.').replace(os.sep, '/')}")
        return sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()

    def _tree(self, text: str, file: str, folder: str | None) -> Item | None:
        return compose(text, file, self.log, self.environ, self._include, folder=folder, pure=self.pure)

    def _include(self, inner_path: str, tag: Item, path: Path) -> Item | None:
        """The content of `!file inner_path`, or `None` after a mistake."""
        file = os.path.normpath(os.path.join(os.path.dirname(tag.file), inner_path))  # noqa: PTH118, PTH120
        name = "the file" if tag.from_env else inner_path
        problem = self._refusal(inner_path, file, name)
        if problem is None:
            try:
                return self._trees.get(os.path.realpath(file)) or self._read(file, tag, path)
            except Refused as refused:
                problem = (refused.message, refused.hint, refused.kind)
            except (OSError, ValueError) as error:
                kind = kind_of(error) if isinstance(error, OSError) else "validation.path_not_found"
                words = "may not be read" if kind == "validation.path_denied" else "does not exist"
                problem = (f"`{name}` {words}", f"paths are relative to the folder of `{tag.file}`", kind)
        message, hint, kind = problem
        self.log.add_at(tag, path, f"`!file`: {message}", hint=hint, kind=kind)
        return None

    def _refusal(self, path: str, file: str, name: str) -> tuple[str, str, str] | None:
        """Why a file is not read: message, hint, kind."""
        shape = "validation.shape_invalid"
        if not path or "\0" in path:
            return "a path is missing", "write `!file path/to/file`", shape
        if self.project is not None and not is_inside(file, self.project):
            hint = "keep it in the project, or allow it with --allow-outside"
            return f"`{name}` lies outside the project", hint, "validation.path_denied"
        if os.path.realpath(file) in self._reading:
            return f"`{name}` includes itself", "remove one of the includes in the cycle", shape
        if len(self._reading) > MAX_NESTED:
            return f"includes are nested more than {MAX_NESTED} deep", "include it in an outer file", shape
        if len(self.files) >= MAX_FILES or self.size > MAX_BYTES:
            return (
                f"more than {MAX_FILES:,} files or {MAX_BYTES:,} bytes are included",
                "split the file",
                shape,
            )
        return None

    def _read(self, file: str, tag: Item, path: Path) -> Item | None:
        content = read(file, "the file" if tag.from_env else file)
        self.files[file] = (content.digest, content.text)
        self.size += content.size
        folder = os.path.dirname(file) or "."  # noqa: PTH120
        real = os.path.realpath(file)
        if file.lower().endswith(_YAML):
            self._reading.append(real)
            tree = self._tree(content.text, file, folder)
            self._reading.pop()
        else:
            tree = self._text(content.text, file, folder, path)
        if tree is not None:
            self._trees[real] = tree
        return tree

    def _text(self, text: str, file: str, folder: str, path: Path) -> Item:
        """An included text file, such as a prompt."""
        item = Item(text, 0, 0, file, folder)
        item.first_line = 1
        if "${" in text:
            expanded = expand(text, self.environ)
            item.value, item.from_env = expanded.text, expanded.from_env
            for unset in expanded.unset:
                self.log.add_at(
                    item,
                    path,
                    f"the environment variable `{unset}` is not set",
                    kind="validation.config_invalid",
                    hint=f"set it, or write `${{{unset}:-…}}` or `$${{{unset}}}` in `{file}`",
                )
            if expanded.problem:
                self.log.add_at(item, path, f"the text {expanded.problem}", kind="validation.config_invalid")
        return item


def load(
    path: str,
    log: MistakeLog,
    environ: Mapping[str, str],
    *,
    allow_outside: bool = False,
    pure: bool = False,
) -> Loaded:
    """The tree of the file at `path`.

    Raises:
        OSError: the root file cannot be opened.
        Refused: the root file is not a regular file.
    """
    project = None if allow_outside else project_of(path)
    loader = Loader(log, environ, project=project, pure=pure)
    try:
        content = read(path, path)
    except Refused as refused:
        if refused.kind == "validation.path_wrong_type":
            raise
        log.add(refused.message, None, hint=refused.hint)
        return Loaded(root=None, files={}, digest="")
    return loader.root(content, path)
