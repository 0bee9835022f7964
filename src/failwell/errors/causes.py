"""The exceptions below an exception: causes, contexts and group members, walked once, safely.

The slots are read through `BaseException` itself, so a property that shadows `__cause__` is
not called. Cycles end the walk, and so do its limits; what was left out is reported.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, NamedTuple

MOST_LINKS = 24
DEEPEST = 12

_cause: Any = BaseException.__dict__["__cause__"].__get__
_context: Any = BaseException.__dict__["__context__"].__get__
_suppressed: Any = BaseException.__dict__["__suppress_context__"].__get__
_SENT = "_sent_with"
instance_dict: Callable[[BaseException], dict[str, Any]] = BaseException.__dict__["__dict__"].__get__
"""The attributes of an exception, read without calling code of its class. Stamps are stored there."""
traceback_of: Callable[[BaseException], TracebackType | None] = BaseException.__dict__[
    "__traceback__"
].__get__
"""The traceback of an exception, read without calling code of its class."""
LEDGER_STAMP = "__failwell_ledger__"
"""The attribute in which an exception carries the attempts that led to it."""
_name: Any = type.__dict__["__name__"].__get__
_qualified_name: Any = type.__dict__["__qualname__"].__get__
_module: Any = type.__dict__["__module__"].__get__
_members: Any = BaseExceptionGroup.__dict__["exceptions"].__get__


class Link(NamedTuple):
    """One exception below another, and how they are connected."""

    error: BaseException
    via: Literal["cause", "context", "member"]
    level: int


def below(error: BaseException) -> tuple[BaseException, Literal["cause", "context"]] | None:
    """What a traceback would print above `error`: its cause, or else its unsuppressed context."""
    cause = cause_of(error)
    if cause is not None:
        return cause, "cause"
    context = _context(error)
    return None if context is None or _suppressed(error) else (context, "context")


def stands_alone(error: BaseException) -> bool:
    """Whether `error` has no cause, no context and no members. Most exceptions have none."""
    return (
        _cause(error) is None and _context(error) is None and not issubclass(type(error), BaseExceptionGroup)
    )


def members(error: BaseException) -> tuple[BaseException, ...]:
    """The members of a group; nothing for any other exception."""
    return _members(error) if is_group(error) else ()


def is_group(error: BaseException) -> bool:
    """Whether `error` is a group by its real class. `isinstance` also reads `__class__`, which may be anything."""
    return issubclass(type(error), BaseExceptionGroup)


def cause_of(error: BaseException) -> BaseException | None:
    """The cause of `error`, read without calling code of its class.

    A process pool replaces the cause with the traceback of its worker, as text. A fault that passed
    through a pool remembers its cause.
    """
    cause = _cause(error)
    if cause is None or not _is_remote(cause):
        return cause
    return instance_dict(error).get(_SENT, cause)


def remote_of(error: BaseException) -> BaseException | None:
    """The worker's traceback that a process pool put in the place of the cause, if one did."""
    cause = _cause(error)
    return cause if cause is not None and _is_remote(cause) else None


def _is_remote(cause: BaseException) -> bool:
    return _name(type(cause)).endswith("RemoteTraceback")


def send_with(error: BaseException, cause: BaseException | None) -> None:
    """Set the cause of `error`, and remember it in case a process pool replaces it."""
    error.__cause__ = cause
    instance_dict(error)[_SENT] = cause


def type_name(thing: object) -> str:
    """The short name of the class of `thing`, read without calling code of its metaclass."""
    return _name(type(thing))[:200]


def full_name(thing: object) -> str:
    """The name of the class of `thing` as tracebacks print it: with its module unless that is `builtins`."""
    name, module = _qualified_name(type(thing)), module_name(thing)
    return f"{module}.{name}"[:300] if module and module != "builtins" else name[:300]


def module_name(thing: object) -> str | None:
    """The module of the class of `thing`, if it has one, read without calling code of its metaclass."""
    try:
        module = _module(type(thing))
    except AttributeError:
        # The class statement ran where there was no `__name__`.
        return None
    return module if type(module) is str else None


def links(error: BaseException) -> tuple[list[Link], bool]:
    """Everything below `error`, depth first in printing order, and whether some was left out."""
    if stands_alone(error):
        return [], False
    chain: list[Link] = []
    seen = {id(error)}
    waiting = _under(error, 1)
    while waiting:
        link = waiting.pop(0)
        if id(link.error) in seen:
            continue
        if len(chain) >= MOST_LINKS or link.level > DEEPEST:
            return chain, True
        seen.add(id(link.error))
        chain.append(link)
        waiting[:0] = _under(link.error, link.level + 1)
    return chain, False


def _under(error: BaseException, level: int) -> list[Link]:
    chain: list[Link] = []
    if is_group(error):
        chain = [Link(member, "member", level) for member in members(error)[: MOST_LINKS + 1]]
    under = below(error)
    if under is not None:
        chain.append(Link(under[0], under[1], level))
    return chain
