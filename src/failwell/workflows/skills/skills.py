"""What the key `skills` of a workflow file names: folders with a `SKILL.md`, whose text goes into the instructions of a model."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from failwell.errors.frozen import frozen
from failwell.files.item_tree import Item
from failwell.files.mistakes import MistakeLog, one_line
from failwell.files.yaml_reader import compose

FILE = "SKILL.md"
BUILT_IN = {name: Path(__file__).parent / "failwell" for name in ("failwell", "conductor")}
"""Names of skills that are installed with us. Files of conductor name its own; ours takes its place."""
_MOST_BYTES = 1024 * 1024
_FENCE = "---"
_PERSONAL = ("~/.copilot/skills", "~/.claude/skills")
_PROJECT = (".github/skills", ".claude/skills")


class SkillInvalid(ValueError):
    """A skill that cannot be used; the message names it and says what to do."""


@frozen
class Skill:
    """One skill."""

    name: str
    description: str
    text: str
    """The instructions, and what its `references` folder holds."""
    folder: str

    @property
    def size(self) -> int:
        """Bytes of the text."""
        return len(self.text.encode())


def find_skills(entry: str, base: str) -> list[Skill]:
    """The skills that an entry of `skills` names: a built-in one, a folder with a skill, or a folder of such folders.

    Raises:
        SkillInvalid: there is none, or one of them cannot be used.
    """
    if not is_path(entry):
        folder = BUILT_IN.get(entry)
        if folder is None:
            known = ", ".join(sorted(BUILT_IN))
            raise SkillInvalid(
                f"there is no built-in skill `{entry}`; write a path, such as `./{entry}`, or one of {known}"
            )
        return [read_skill(folder)]
    folder = Path(base) / Path(entry).expanduser()
    if (folder / FILE).is_file():
        return [read_skill(folder)]
    inner = _inside(folder)
    if not inner:
        raise SkillInvalid(
            f"`{entry}` holds no skill: there is no {FILE} in it or in a folder directly below it"
        )
    return [read_skill(path) for path in inner]


def is_path(entry: str) -> bool:
    """Whether an entry is a path, by its spelling: a folder can never take the place of a name."""
    return entry.startswith((".", "~")) or "/" in entry or "\\" in entry


def discovered_skills(
    sources: Iterable[str], exclude: Sequence[str], base: str
) -> tuple[list[Skill], list[str]]:
    """The skills that are installed for the project and the person, and notes about those that were left out."""
    roots: list[Path] = []
    wanted = set(sources)
    if "project" in wanted:
        roots += [folder / name for folder in _up_to_repository(Path(base).absolute()) for name in _PROJECT]
    if "personal" in wanted:
        roots += [Path(name).expanduser() for name in _PERSONAL]
    skills: dict[str, Skill] = {}
    notes: list[str] = []
    for root in roots:
        for path in _inside(root):
            try:
                skill = read_skill(path)
            except SkillInvalid as error:
                notes.append(f"left out: {error}")
                continue
            if skill.name not in exclude:
                skills.setdefault(skill.name, skill)
    return list(skills.values()), notes


def read_skill(folder: Path) -> Skill:
    """The skill in a folder.

    Raises:
        SkillInvalid: its file cannot be read, or does not begin with a name and a description.
    """
    file = folder / FILE
    fields, body = front_matter(file)
    for key in ("name", "description"):
        if not fields.get(key, "").strip():
            raise SkillInvalid(f"{file} needs a `{key}` between the lines `---` at its beginning")
    parts = [body.strip()]
    parts += [
        f"### {reference.relative_to(folder)}\n\n{_text(reference).strip()}"
        for reference in sorted((folder / "references").rglob("*.md"))
    ]
    return Skill(
        name=fields["name"].strip(),
        description=fields["description"].strip(),
        text="\n\n".join(parts),
        folder=str(folder),
    )


def front_matter(file: Path) -> tuple[dict[str, str], str]:
    """The texts between the first two lines `---` of a Markdown file by key, and what follows.

    Raises:
        SkillInvalid: the file cannot be read, or these lines are not YAML.
    """
    text = _text(file)
    lines = text.splitlines()
    if not lines or lines[0].strip() != _FENCE:
        return {}, text
    end = next((index for index, line in enumerate(lines[1:], 1) if line.strip() == _FENCE), None)
    if end is None:
        raise SkillInvalid(f"{file} begins with `---`, and the second `---` is missing")
    log = MistakeLog()
    root = compose("\n".join(lines[1:end]), str(file), log, None, _no_include)
    if root is None or root.keys is None:
        mistakes = log.finish({})
        reason = one_line(mistakes[0]) if mistakes else "it is not a mapping"
        raise SkillInvalid(
            f"the first lines of {file} cannot be read ({reason}); write `description: |` before a text with colons"
        )
    fields: dict[str, str] = {}
    for key, item in root.value.items():
        if isinstance(item, Item) and isinstance(item.value, str):
            fields[str(key)] = item.value
    return fields, "\n".join(lines[end + 1 :])


def _no_include(_path: str, _tag: Item, _place: object) -> None:
    """Front matter includes no files."""


def _text(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise SkillInvalid(
            f"{file} cannot be read: {(error.strerror or 'it cannot be opened').lower()}"
        ) from error
    if len(content) > _MOST_BYTES:
        raise SkillInvalid(f"{file} is larger than 1 MiB")
    return content.decode("utf-8", "replace")


def _inside(root: Path) -> list[Path]:
    """The folders directly below `root` that hold a skill."""
    try:
        return sorted(path for path in root.iterdir() if (path / FILE).is_file())
    except OSError:
        # Not there, or not readable: it holds no skill for us.
        return []


def _up_to_repository(folder: Path) -> list[Path]:
    """The folder and those around it up to the repository; the folder alone outside of one."""
    around = [folder, *folder.parents]
    for index, parent in enumerate(around):
        if (parent / ".git").exists():
            return around[: index + 1]
    return [folder]
