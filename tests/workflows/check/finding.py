"""What a check says of a plan, in the shape that tests ask for."""

from collections.abc import Collection, Mapping

from failwell.files.mistakes import Mistake
from failwell.workflows.check.rules import check
from failwell.workflows.plan import Plan

ALL = frozenset({"agent", "job", "tool"})


def found(
    plan: Plan,
    *,
    as_root: bool = True,
    children: Mapping[str, Plan] | None = None,
    available: Collection[str] = ALL,
) -> list[Mistake]:
    return check(plan, as_root=as_root, children=children, available=available)


def errors(plan: Plan, *, as_root: bool = True, children: Mapping[str, Plan] | None = None) -> list[str]:
    return [one.message for one in found(plan, as_root=as_root, children=children) if one.is_error]


def warnings(plan: Plan, *, as_root: bool = True, children: Mapping[str, Plan] | None = None) -> list[str]:
    return [one.message for one in found(plan, as_root=as_root, children=children) if not one.is_error]


def hints(plan: Plan, *, as_root: bool = True, children: Mapping[str, Plan] | None = None) -> list[str]:
    return [one.hint for one in found(plan, as_root=as_root, children=children)]
