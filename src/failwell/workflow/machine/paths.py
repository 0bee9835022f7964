"""Paths of executions: `build`, `fan[3]`, `group/member`, `child/step`, to any depth."""


def item_path(group: str, index: int) -> str:
    """The path of item `index` of a `for_each`."""
    return f"{group}[{index}]"


def below(path: str, name: str) -> str:
    """The path of `name` in the group or sub-workflow at `path`; the root's is empty."""
    return f"{path}/{name}" if path else name


def inside(path: str, ancestor: str) -> bool:
    """Whether `path` lies below `ancestor`."""
    return path.startswith((f"{ancestor}/", f"{ancestor}["))


def index_of(path: str) -> int | None:
    """The item number that a path ends with, if it does."""
    if not path.endswith("]"):
        return None
    return int(path[path.rindex("[") + 1 : -1])
