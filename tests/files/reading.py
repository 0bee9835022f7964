"""Reading YAML in tests."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from failwell.files.disk import FileText, project_of
from failwell.files.includes import Loaded, Loader, load
from failwell.files.item_tree import Item
from failwell.files.mistakes import Mistake, MistakeLog


def load_text(
    text: str,
    file: str,
    log: MistakeLog,
    environ: Mapping[str, str],
    *,
    allow_outside: bool = False,
    pure: bool = False,
) -> Loaded:
    """The tree of a text as if it stood in `file`."""
    content = text.encode("utf-8", "surrogatepass")
    document = FileText(
        text=text.removeprefix("\ufeff"), digest=sha256(content).hexdigest(), size=len(content)
    )
    project = None if allow_outside else project_of(file)
    return Loader(log, environ, project=project, pure=pure).root(document, file)


def read(text: str, *, pure: bool = False, **environ: str) -> Item:
    """The tree of a text in which nothing is wrong."""
    log = MistakeLog()
    root = load_text(text, "x.yaml", log, environ, pure=pure).root
    assert log.mistakes == []
    assert root is not None
    return root


def wrong(text: str, *, pure: bool = False, **environ: str) -> list[Mistake]:
    """What is wrong with a text."""
    log = MistakeLog()
    loaded = load_text(text, "x.yaml", log, environ, pure=pure)
    return list(log.finish({path: held for path, (_, held) in loaded.files.items()}))


def the_wrong(text: str, *, pure: bool = False, **environ: str) -> Mistake:
    """The one thing that is wrong with a text."""
    (mistake,) = wrong(text, pure=pure, **environ)
    return mistake


def read_file(
    path: Path, *, allow_outside: bool = False, **environ: str
) -> tuple[Item | None, list[Mistake], dict[str, tuple[str, str]]]:
    """A file on disk: its tree, its mistakes, and the files that were read."""
    log = MistakeLog()
    loaded = load(str(path), log, environ, allow_outside=allow_outside)
    texts = {name: held for name, (_, held) in loaded.files.items()}
    return loaded.root, list(log.finish(texts)), dict(loaded.files)
