"""`Fault`: the base of the exceptions that failwell raises and that authors raise.

A fault names its kind and the facts it knows, as keywords, and composes its message from
them. What it leaves unset it inherits, field by field, from the fault it was raised from.
The base owns pickling, copying, equality and notes, so no subclass writes a constructor
and none can break when it crosses a process pool.
"""

from collections.abc import Mapping
from copyreg import pickle
from functools import lru_cache
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeGuard, cast, dataclass_transform

from failwell.errors.axes import Blame, Certainty
from failwell.errors.causes import LEDGER_STAMP, cause_of, send_with
from failwell.errors.facts import NotBefore, ProviderMetadata, ResourceShortfall, UserAction
from failwell.errors.kind_registry import KindError, check_kind, find_kind

_DEEPEST = 64
"""How far a chain of causes is followed; real ones are a handful of links long."""


COMMON_FIELDS: frozenset[str] = frozenset(
    {
        "kind", "message", "caller_facing", "certainty", "blame", "retryable", "user_action", "provider",
        "model", "provider_metadata", "not_before", "fields_invalid", "resource_shortfall", "details",
    }
)  # fmt: skip
"""Fields that every fault accepts; all but the first three are inherited when left unset."""


class _KindField:
    """Reads as the fault's own kind, or else as the kind of the fault that caused it."""

    def __get__(self, fault: "Fault | None", owner: type["Fault"]) -> str | None:
        if fault is None:
            return owner.declared_kind
        return next((link.own_kind for link in lineage(fault) if link.own_kind is not None), None)

    def __set__(self, fault: "Fault", value: str | None) -> None:
        if value is not None:
            check_kind(value)
        fault.set_own_kind(value)


@dataclass_transform(kw_only_default=True)
class _Fields(Exception):
    """Tells type checkers that annotations in a fault's body are keyword fields."""


class Fault(_Fields):
    """A failure described by fields.

    Subclass it with `kind=` and annotate further fields in the body; they become keyword
    arguments and are recorded in the report's `details`. Override `summary` to compose the
    message; without it the docstring's first line is the message.
    """

    if TYPE_CHECKING:
        kind: str | None = None
    else:
        kind = _KindField()
    message: str | None = None
    """What happened, for a person. If it is unset, `summary()` composes it."""
    caller_facing: bool | None = None
    """Whether the message was written for the caller. By default it is if the fault names its
    kind itself; the message of a wrapper that inherits its kind is for operators."""
    certainty: Certainty | None = None
    blame: Blame | None = None
    retryable: bool | None = None
    """`False` forbids a repeat that the category would allow. It cannot grant one."""
    user_action: UserAction | None = None
    provider: str | None = None
    model: str | None = None
    provider_metadata: ProviderMetadata | None = None
    not_before: NotBefore | None = None
    fields_invalid: list[str] | None = None
    resource_shortfall: ResourceShortfall | None = None
    details: Mapping[str, Any] | None = None
    """Further facts, as JSON."""

    declared_kind: ClassVar[str | None] = None
    """The kind of the class, if it declares one."""
    extra_fields: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that subclasses added."""
    _known: ClassVar[frozenset[str]] = COMMON_FIELDS
    _required: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, *, kind: str | None = None, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if kind is not None:
            try:
                check_kind(kind)
            except KindError as mistake:
                raise KindError(f"{cls.__name__}: {mistake}") from None
            cls.declared_kind = kind
        own = [
            name
            for name, hint in get_annotations(cls).items()
            if not name.startswith("_") and "ClassVar" not in str(hint) and name not in COMMON_FIELDS
        ]
        cls.extra_fields = (*(n for n in cls.extra_fields if n not in own), *own)
        cls._known = COMMON_FIELDS.union(cls.extra_fields)
        cls._required = tuple(n for n in cls.extra_fields if not hasattr(cls, n))

    def __new__(cls, *_args: Any, **_fields: Any) -> Self:
        fault = super().__new__(cls)
        fault.set_own_kind(None)
        return fault

    def __init__(self, **fields: Any) -> None:
        super().__init__()
        for name, value in fields.items():
            if name not in self._known:
                raise TypeError(_no_such_field(type(self), name))
            setattr(self, name, _TYPED[name](value) if name in _TYPED and value is not None else value)
        missing = [name for name in self._required if name not in fields]
        if missing:
            raise TypeError(f"{type(self).__name__} needs {', '.join(f'`{n}`' for n in missing)}")

    @property
    def own_kind(self) -> str | None:
        """The kind this fault declares itself, before anything is inherited."""
        return self.__dict__["_own_kind"] or self.declared_kind

    def set_own_kind(self, kind: str | None) -> None:
        """Set this fault's kind without a check. A newer peer may use kinds that are unknown here."""
        self.__dict__["_own_kind"] = kind

    def summary(self) -> str:
        """The message if `message` is unset: the summary of the kind, or the first line of the docstring."""
        own = self.__dict__["_own_kind"]
        kind = None if own is None else find_kind(own)
        if kind is not None:
            return kind.summary
        doc = None if type(self) is Fault else type(self).__doc__
        return doc.strip().split("\n", 1)[0] if doc else ""

    def own_fields(self) -> dict[str, Any]:
        """The fields a subclass added, with their values; they become `details`."""
        return {name: getattr(self, name) for name in self.extra_fields}

    def __str__(self) -> str:
        return self.summary() if self.message is None else self.message

    def __repr__(self) -> str:
        fields = ", ".join(f"{k}={v!r}" for k, v in self.state().items())
        return f"{type(self).__name__}({fields})"

    @classmethod
    def wrap(cls, cause: BaseException, message: str | None = None, **fields: Any) -> Self:
        """A fault of this class around `cause`, ready to be raised.

        Whatever the wrapper does not set (its kind included, when the class declares none)
        is inherited, so wrapping adds context and never changes the classification.
        """
        wrapper = cls(**fields) if message is None else cls(message=message, **fields)
        wrapper.__cause__ = cause
        return wrapper

    def state(self) -> dict[str, Any]:
        """The fields that were set on this fault, its own kind included."""
        state = {k: v for k, v in self.__dict__.items() if not k.startswith("_")}
        if self.__dict__["_own_kind"] is not None:
            state["kind"] = self.__dict__["_own_kind"]
        return state

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fault) or type(other) is not type(self):
            return NotImplemented
        return self.state() == other.state() and _notes(self) == _notes(other)

    def __hash__(self) -> int:
        return hash((type(self), self.own_kind, str(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        # `type(self)(*args)` is what Exception does, and what breaks every exception whose
        # constructor does not mirror `args`. State goes back in as state. The causes travel
        # too, flat, because a wrapper without a kind of its own is classified by them.
        links = [_link(fault) for fault in lineage(self)]
        return (_restore, (links, _portable_end(self)))

    def __copy__(self) -> Self:
        twin = _rebuild(_link(self))
        twin.__cause__ = cause_of(self)
        twin.__context__ = self.__context__
        twin.__suppress_context__ = self.__suppress_context__
        return cast("Self", twin.with_traceback(self.__traceback__))


_TYPED: dict[str, Any] = {"certainty": Certainty, "blame": Blame}


def lineage(fault: Fault) -> list[Fault]:
    """`fault` and the faults it inherits from, nearest first.

    A foreign exception ends the line: its own causes are not inherited. Cycles
    and endless chains end it too.
    """
    line: list[Fault] = []
    seen: set[int] = set()
    link: BaseException | None = fault
    while is_fault(link) and id(link) not in seen and len(line) < _DEEPEST:
        line.append(link)
        seen.add(id(link))
        link = cause_of(link)
    return line


def is_fault(thing: object) -> TypeGuard[Fault]:
    """Whether `thing` is a fault by its real class. `isinstance` also reads `__class__`, which may be anything."""
    return issubclass(type(thing), Fault)


def foreign_end(fault: Fault) -> BaseException | None:
    """The foreign exception that caused the last fault of the line, if there is one."""
    end = cause_of(lineage(fault)[-1])
    return None if is_fault(end) else end


def _notes(error: BaseException) -> list[str]:
    # Anybody may assign `__notes__`, and to anything.
    notes: object = getattr(error, "__notes__", None)
    return (
        [note for note in cast("list[object]", notes) if isinstance(note, str)]
        if isinstance(notes, list)
        else []
    )


def _portable_end(fault: Fault) -> Fault | None:
    end = foreign_end(fault)
    if end is None:
        return None
    # Only a report survives pickling for certain, so this one function reaches upward, when a fault with a
    # foreign cause is pickled. The import contract names it as its single exception.
    from failwell.adapters.revival import portable

    return portable(end)


_Link = tuple[type[Fault], dict[str, Any], tuple[object, ...], list[str], object]


def _link(fault: Fault) -> _Link:
    return (type(fault), fault.state(), fault.args, _notes(fault), fault.__dict__.get(LEDGER_STAMP))


def _rebuild(link: _Link) -> Fault:
    cls, state, args, notes, ledger = link
    fault = cls.__new__(cls)
    for name, value in state.items():
        if name == "kind":
            fault.set_own_kind(value)
        else:
            setattr(fault, name, value)
    fault.args = args
    for note in notes:
        fault.add_note(note)
    if ledger is not None:
        fault.__dict__[LEDGER_STAMP] = ledger
    return fault


def _restore(links: list[_Link], end: Fault | None) -> Fault:
    restored = _rebuild(links[-1])
    send_with(restored, end)
    for link in reversed(links[:-1]):
        wrapper = _rebuild(link)
        send_with(wrapper, restored)
        restored = wrapper
    return restored


def _no_such_field(cls: type[Fault], name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, cls._known, n=1)  # pyright: ignore[reportPrivateUsage]
    hint = f"; did you mean `{near[0]}`?" if near else ""
    return f"{cls.__name__} has no field `{name}`{hint}"


class _JoinedClass(type):
    """The class of classes that `join` creates. They are pickled by their two parents."""

    parents: tuple[type[Fault], type[Fault]]


@lru_cache(maxsize=256)
def join(stand_in: type[Fault], raised: type[Fault]) -> type[Fault]:
    """A class that is both, with the name of `raised`: the class that users know and that tracebacks show."""
    body = {"__module__": raised.__module__, "__doc__": raised.__doc__, "parents": (stand_in, raised)}
    return cast("type[Fault]", _JoinedClass(raised.__name__, (stand_in, raised), body))


def _parents(joined: _JoinedClass) -> tuple[Any, ...]:
    return join, joined.parents


# Here, and not where classes are joined: a pickler that has begun takes no further function.
pickle(cast("Any", _JoinedClass), _parents)
