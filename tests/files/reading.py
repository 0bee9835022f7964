"""Reading YAML in tests."""

from pathlib import Path

from failwell.files.includes import load, load_text
from failwell.files.item_tree import Item
from failwell.files.mistakes import Mistake, Problems


def read(text: str, *, pure: bool = False, **environ: str) -> Item:
    """The tree of a text in which nothing is wrong."""
    problems = Problems()
    root = load_text(text, "x.yaml", problems, environ, pure=pure).root
    assert problems.found == []
    assert root is not None
    return root


def wrong(text: str, *, pure: bool = False, **environ: str) -> list[Mistake]:
    """What is wrong with a text."""
    problems = Problems()
    loaded = load_text(text, "x.yaml", problems, environ, pure=pure)
    return list(problems.finish({path: held for path, (_, held) in loaded.files.items()}))


def the_wrong(text: str, *, pure: bool = False, **environ: str) -> Mistake:
    """The one thing that is wrong with a text."""
    (mistake,) = wrong(text, pure=pure, **environ)
    return mistake


def read_file(
    path: Path, *, allow_outside: bool = False, **environ: str
) -> tuple[Item | None, list[Mistake], dict[str, tuple[str, str]]]:
    """A file on disk: its tree, its mistakes, and the files that were read."""
    problems = Problems()
    loaded = load(str(path), problems, environ, allow_outside=allow_outside)
    texts = {name: held for name, (_, held) in loaded.files.items()}
    return loaded.root, list(problems.finish(texts)), dict(loaded.files)
