"""A workflow file and everything it includes with `!file`, as one tree."""

import os
from collections.abc import Mapping
from hashlib import sha256

from failwell.fault.frozen import frozen
from failwell.files.disk import FileText, Refused, is_inside, kind_of, project_of, read
from failwell.files.env_variables import expand
from failwell.files.item_tree import Item, Path
from failwell.files.mistakes import Problems
from failwell.files.yaml_reader import compose

MOST_FILES = 1_000
MOST_NESTED = 20
"""Files that include each other in a row."""
MOST_BYTES = 16 * 1024 * 1024
"""Of all files together."""
_YAML = (".yaml", ".yml", ".json")


@frozen
class Loaded:
    """What was read; mistakes are in the caller's list."""

    root: Item | None
    files: Mapping[str, tuple[str, str]]
    """Path as shown → digest and text as it stands on disk, the root first."""
    digest: str


class Loader:
    """Reads one workflow file; `environ` gives the variables, `project` the folder to stay in."""

    def __init__(
        self,
        problems: Problems,
        environ: Mapping[str, str],
        *,
        project: str | None = None,
        held: Mapping[str, str] | None = None,
        pure: bool = False,
    ) -> None:
        self.problems = problems
        self.environ = environ
        self.project = project
        """`None` lets includes come from anywhere."""
        self.held = held
        """Texts by path, as they were recorded; with them nothing is read from disk."""
        self.pure = pure
        self.files: dict[str, tuple[str, str]] = {}
        self.size = 0
        self._reading: list[str] = []
        """Real paths of the files that are open, to see a circle."""
        self._made: dict[str, Item] = {}

    def root(self, content: FileText, file: str) -> Loaded:
        """The tree of the root file, whose text was read already."""
        self.files[file] = (content.digest, content.text)
        self._reading.append(os.path.realpath(file))
        tree = self._tree(content.text, file, None)
        self._reading.pop()
        return Loaded(root=tree, files=self.files, digest=self._digest(file))

    def _digest(self, root: str) -> str:
        """One digest for the root and its includes, the same wherever the folder lies."""
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
        return compose(text, file, self.problems, self.environ, self._include, folder=folder, pure=self.pure)

    def _include(self, inner_path: str, tag: Item, path: Path) -> Item | None:
        """What `!file path` stands for, or `None` after a mistake."""
        shown = os.path.normpath(os.path.join(os.path.dirname(tag.file), inner_path))  # noqa: PTH118, PTH120
        name = "the file" if tag.veiled else inner_path
        problem = self._refusal(inner_path, shown, name)
        if problem is None:
            try:
                return self._made.get(os.path.realpath(shown)) or self._read(shown, tag, path)
            except Refused as refused:
                problem = (refused.message, refused.hint, refused.kind)
            except (OSError, ValueError) as error:
                kind = kind_of(error) if isinstance(error, OSError) else "validation.path_not_found"
                words = "may not be read" if kind == "validation.path_denied" else "does not exist"
                problem = (f"`{name}` {words}", f"paths start from the folder of `{tag.file}`", kind)
        message, hint, kind = problem
        self.problems.wrong(tag, path, f"`!file`: {message}", hint=hint, kind=kind)
        return None

    def _refusal(self, path: str, shown: str, name: str) -> tuple[str, str, str] | None:
        """Why a file is not even looked at: message, hint, kind."""
        shape = "validation.shape_invalid"
        if not path or "\0" in path:
            return "a path is missing", "write `!file path/to/file`", shape
        if self.project is not None and not is_inside(shown, self.project):
            hint = "keep it in the project, or allow it with --allow-outside"
            return f"`{name}` lies outside the project", hint, "validation.path_denied"
        if os.path.realpath(shown) in self._reading:
            return f"`{name}` includes itself", "remove one of the includes in the circle", shape
        if len(self._reading) > MOST_NESTED:
            return f"more than {MOST_NESTED} files include each other in a row", "include it higher up", shape
        if len(self.files) >= MOST_FILES or self.size > MOST_BYTES:
            return (
                f"more than {MOST_FILES:,} files or {MOST_BYTES:,} bytes are included",
                "split the workflow into sub-workflows",
                shape,
            )
        return None

    def _read(self, file: str, tag: Item, path: Path) -> Item | None:
        content = self._content(file, "the file" if tag.veiled else file)
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
            self._made[real] = tree
        return tree

    def _content(self, file: str, name: str) -> FileText:
        if self.held is None:
            return read(file, name)
        if file not in self.held:
            raise FileNotFoundError(file)
        return recorded(self.held[file])

    def _text(self, text: str, file: str, folder: str, path: Path) -> Item:
        """A file that is a text, such as a prompt."""
        item = Item(text, 0, 0, file, folder)
        if "${" in text:
            expanded = expand(text, self.environ)
            item.value, item.veiled = expanded.text, expanded.is_veiled
            for unset in expanded.unset:
                self.problems.wrong(
                    item,
                    path,
                    f"the environment variable `{unset}` is not set",
                    kind="validation.config_invalid",
                    hint=f"set it, or write `${{{unset}:-…}}` or `$${{{unset}}}` in `{file}`",
                )
            if expanded.problem:
                self.problems.wrong(
                    item, path, f"the text {expanded.problem}", kind="validation.config_invalid"
                )
        return item


def load(
    path: str,
    problems: Problems,
    environ: Mapping[str, str],
    *,
    allow_outside: bool = False,
    pure: bool = False,
) -> Loaded:
    """The tree of the workflow file at `path`.

    Raises:
        OSError: the root file cannot be opened.
        Refused: the root file is no regular file.
    """
    project = None if allow_outside else project_of(path)
    loader = Loader(problems, environ, project=project, pure=pure)
    try:
        content = read(path, path)
    except Refused as refused:
        if refused.kind == "validation.path_wrong_type":
            raise
        problems.add(refused.message, None, hint=refused.hint)
        return Loaded(root=None, files={}, digest="")
    return loader.root(content, path)


def load_text(
    text: str,
    file: str,
    problems: Problems,
    environ: Mapping[str, str],
    *,
    allow_outside: bool = False,
    held: Mapping[str, str] | None = None,
    pure: bool = False,
) -> Loaded:
    """The tree of a workflow that is at hand as text; `file` is where its includes start from.

    With `held`, includes are taken from these texts by path, and nothing is read from disk.
    """
    project = None if allow_outside or held is not None else project_of(file)
    return Loader(problems, environ, project=project, held=held, pure=pure).root(recorded(text), file)


def recorded(text: str) -> FileText:
    """A text as if it had been read from a file."""
    content = text.encode("utf-8", "surrogatepass")
    return FileText(text=text.removeprefix("\ufeff"), digest=sha256(content).hexdigest(), size=len(content))
