"""Exceptions that fight back: every way we know in which one can bite whoever looks at it.

Each specimen is made afresh by a function without arguments, because some of them are spoiled by
being looked at once. Tests name them one by one; fuzzing grafts them into random trees.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from failwell.errors.axes import ActionKind
from failwell.errors.facts import NotBefore, ProviderMetadata, ResourceShortfall, UserAction
from failwell.errors.fault import Fault

Specimen = Callable[[], BaseException]
Make = Callable[[], Any]


class Escape(BaseException):
    """Raised by hostile code, and not even an `Exception`."""


ESCAPES: tuple[type[BaseException], ...] = (
    RuntimeError, AttributeError, MemoryError, RecursionError, GeneratorExit, Escape,
)  # fmt: skip
"""What a hostile method raises; the last two are not even an `Exception`."""

LOOKED_AT = (
    "__cause__", "__context__", "__suppress_context__", "__traceback__", "__notes__", "__dict__", "__class__",
    "args", "errno", "returncode", "errors", "exceptions", "body", "response", "request", "messages", "code",
    "name", "lineno", "status_code", "reason", "timeout", "sqlite_errorname", "recorded_report", "own_kind",
    "provider", "model", "details", "category", "default_retriable",
)  # fmt: skip
"""Attributes that somebody on the error path may read."""

TEXTS = (
    "", " ", "\x00", "a\x00b", "\ud800", "\udfff\ud800", "ok \udc80 ok", "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "\u202egnirts\u202c", "\u2066hidden\u2069", "e\u0301" * 50, "😀" * 700, "line\nline\r\nline\u2028line",
    "[bold]markup[/bold] :smile:", "# heading\n```\nfence", '{"json": [1, 2', "%s %d %(x)s {0} {x!r}",
    "x" * 1_999, "x" * 2_001, "\u00e9" * 5_000, "=" * 3_000, "://" * 2_000, "a:" * 3_000, "\\" * 3_000,
    "password" * 500, "key=" * 300, "-----BEGIN PRIVATE KEY-----" + "A" * 9_000,
)  # fmt: skip


class TextThatLies(str):
    """A string whose every method says something else, or raises."""

    __slots__ = ()

    def __len__(self) -> int:
        return -1 if len(str.__str__(self)) % 2 else 10**9

    def __getitem__(self, _key: Any) -> str:
        raise RuntimeError("no slice of mine")

    def __contains__(self, _key: object) -> bool:
        return False

    def __eq__(self, _other: object) -> bool:
        raise RuntimeError("equal to nothing")

    def __hash__(self) -> int:
        raise RuntimeError("no hash of mine")

    def __str__(self) -> str:
        raise RuntimeError("no text of mine")

    def __format__(self, _spec: str) -> str:
        raise RuntimeError("no format of mine")

    def strip(self, *_args: Any) -> str:
        raise Escape

    def isascii(self) -> bool:
        return True

    def encode(self, *_args: Any, **_options: Any) -> bytes:
        raise GeneratorExit

    def replace(self, *_args: Any) -> str:
        return self

    def lower(self) -> str:
        return ""


class Bites:
    """An object that raises whatever it was given, whatever is done to it."""

    def __init__(self, escape: type[BaseException]) -> None:
        object.__setattr__(self, "_escape", escape)

    def __getattribute__(self, name: str) -> Any:
        raise object.__getattribute__(self, "_escape")(name)

    def __repr__(self) -> str:
        raise object.__getattribute__(self, "_escape")("repr")

    def __str__(self) -> str:
        raise object.__getattribute__(self, "_escape")("str")

    def __bool__(self) -> bool:
        raise object.__getattribute__(self, "_escape")("bool")

    def __eq__(self, other: object) -> bool:
        raise object.__getattribute__(self, "_escape")("eq")

    def __hash__(self) -> int:
        raise object.__getattribute__(self, "_escape")("hash")

    def __len__(self) -> int:
        raise object.__getattribute__(self, "_escape")("len")

    def __iter__(self) -> Iterator[Any]:
        raise object.__getattribute__(self, "_escape")("iter")

    def __call__(self, *_args: Any, **_options: Any) -> Any:
        raise object.__getattribute__(self, "_escape")("call")


class BitingMapping(Mapping[Any, Any]):
    """A mapping that can be recognised and not be read."""

    def __init__(self, escape: type[BaseException]) -> None:
        self._escape = escape

    def __getitem__(self, key: Any) -> Any:
        raise self._escape(key)

    def __iter__(self) -> Iterator[Any]:
        raise self._escape("iter")

    def __len__(self) -> int:
        return 3

    def items(self) -> Any:
        raise self._escape("items")

    def values(self) -> Any:
        raise self._escape("values")


class EndlessMapping(Mapping[Any, Any]):
    """A mapping with a key for every number there is."""

    def __getitem__(self, key: Any) -> Any:
        return key

    def __iter__(self) -> Iterator[Any]:
        return (f"k{number}" for number in itertools.count())

    def __len__(self) -> int:
        return 2

    def items(self) -> Any:
        return ((f"k{number}", number) for number in itertools.count())

    def values(self) -> Any:
        return itertools.count()


class BitingList(list[Any]):
    """A list that can be recognised and not be read."""

    def __getitem__(self, _key: Any) -> Any:
        raise RuntimeError("no item of mine")

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("no walk through me")


class HugeInt(int):
    """A number whose class does not give it away."""


def nested(depth: int) -> list[Any]:
    """A list in a list in a list."""
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


def self_holding_dict() -> dict[str, Any]:
    """A dictionary that is its own value."""
    held: dict[str, Any] = {"a": 1}
    held["self"] = held
    return held


def self_holding_list() -> list[Any]:
    """A list that is its own item."""
    held: list[Any] = [1]
    held.append(held)
    return held


def wide() -> dict[str, Any]:
    """A few kilobytes that print as many megabytes, because every branch is the same one."""
    leaf: Any = "w" * 4_000
    for _ in range(4):
        leaf = [leaf] * 100
    return {f"k{number}": leaf for number in range(100)}


def around(make: Make, wrap: Callable[[Any], Any]) -> Make:
    """A maker of what `make` makes, wrapped."""
    return lambda: wrap(make())


def always(value: Any) -> Make:
    """A maker of the same thing again and again."""
    return lambda: value


def values() -> list[Make]:
    """Values that JSON does not know, or that cannot be walked."""
    return [
        lambda: float("nan"), lambda: float("inf"), lambda: -float("inf"), lambda: {1, 2, 3}, object,
        lambda: 10**5_000, lambda: -(10**5_000), lambda: HugeInt(10**5_000), lambda: nested(1_000),
        self_holding_dict, self_holding_list, wide, lambda: Bites(RuntimeError), lambda: Bites(Escape),
        lambda: BitingMapping(KeyError), lambda: BitingMapping(Escape), EndlessMapping,
        lambda: BitingList([1, 2]), lambda: TextThatLies("lies"), lambda: b"\xff" * 10, lambda: memoryview(b"ab"),
        lambda: 1j, lambda: range(10**9), itertools.count, lambda: type("M", (type,), {}),
        lambda: {(1, 2): 3, None: 4, 5: 6, b"x": 7, Bites: 8}, lambda: {"\ud800": "\udfff"},
        lambda: {"k" * 10_000: "v" * 10_000}, lambda: datetime.min.replace(tzinfo=UTC), lambda: "x" * 100_000, lambda: True,
        lambda: [None] * 100_000, lambda: {str(number): number for number in range(10_000)},
    ]  # fmt: skip


def a_class(
    called: str = "Hostile", base: Any = Exception, meta: type[type] = type, /, **members: Any
) -> type[BaseException]:
    """An exception class made by hand, so that no checker and no base stands in the way."""
    return cast("type[BaseException]", meta(called, (base,), members))


def made(cls: type[BaseException], *args: Any) -> BaseException:
    """An instance that no constructor had a say in."""
    error = BaseException.__new__(cls)
    if issubclass(cls, Fault):
        object.__getattribute__(error, "__dict__")["_own_kind"] = None
    BaseException.__dict__["args"].__set__(error, args)
    return error


def biting(escape: type[BaseException]) -> Callable[..., Any]:
    """A method that raises."""

    def bite(*_args: Any, **_options: Any) -> Any:
        raise escape("bitten")

    return bite


def biting_property(escape: type[BaseException]) -> property:
    """A property that raises."""
    return property(biting(escape), lambda _self, _value: None)


def with_method(name: str, escape: type[BaseException], base: Any = Exception) -> Specimen:
    """An exception whose method `name` raises."""
    return lambda: made(a_class("Hostile", base, **{name: biting(escape)}), "said")


def with_property(name: str, escape: type[BaseException], base: Any = Exception) -> Specimen:
    """An exception whose attribute `name` raises."""
    return lambda: made(a_class("Hostile", base, **{name: biting_property(escape)}))


def with_attribute(name: str, value: Make, base: Any = Exception) -> Specimen:
    """An exception whose class holds `value` under `name`."""
    return lambda: made(a_class("Hostile", base, **{name: value()}))


def with_meta(name: str, value: Any) -> Specimen:
    """An exception whose class has a metaclass that answers with `value` for `name`."""
    return lambda: made(a_class("Hostile", Exception, type("Meta", (type,), {name: value})))


def from_vendor(module: str, name: str, base: Any = Exception, **members: Any) -> Specimen:
    """An exception that an adapter takes for one of its own."""
    return lambda: made(a_class(name, base, **{"__module__": module, **members}))


def make_fault(**fields: Any) -> Specimen:
    """A fault whose fields were set without asking any constructor."""

    def make() -> BaseException:
        fault = Fault(kind="provider.rate_limited")
        for name, value in fields.items():
            object.__setattr__(fault, name, value() if callable(value) else value)
        return fault

    return make


def fault_with(**members: Any) -> Specimen:
    """A fault of a class that overrides what it should not."""
    return lambda: made(cast("Any", type("HostileFault", (Fault,), members, kind="tool.busy")))


def linked(
    depth: int, link: str, make: Callable[[int], BaseException] = lambda n: ValueError(str(n))
) -> Specimen:
    """A chain of `depth` exceptions, each the `link` of the next."""

    def build() -> BaseException:
        error = make(0)
        for number in range(1, depth):
            above = make(number)
            setattr(above, link, error)
            error = above
        return error

    return build


def a_circle(link: str, back: str) -> Specimen:
    """Two exceptions that hang below each other."""

    def build() -> BaseException:
        first, second = ValueError("first"), RuntimeError("second")
        setattr(first, link, second)
        setattr(second, back, first)
        return first

    return build


def its_own(link: str, base: type[BaseException] = ValueError) -> Specimen:
    """An exception that hangs below itself."""

    def build() -> BaseException:
        error = base()
        setattr(error, link, error)
        return error

    return build


def a_circle_through_a_group() -> BaseException:
    """A group whose member was raised from the group."""
    member = ValueError("member")
    group = ExceptionGroup("circle", [member, KeyError("other")])
    member.__cause__ = group
    group.__context__ = member
    return group


def groups_in_groups(depth: int) -> BaseException:
    """A group in a group in a group."""
    error: Any = OSError(28, "full")
    for _ in range(depth):
        error = ExceptionGroup("layer", [error])
    return error


def the_same_group_again_and_again() -> BaseException:
    """Nine groups, of which each holds the next one a hundred times: a tree of 10^18 members."""
    error: Any = ValueError("leaf")
    for _ in range(9):
        error = ExceptionGroup("layer", [error] * 100)
    return error


def a_crowd(size: int) -> BaseException:
    """A group of very many members."""
    return ExceptionGroup("crowd", [ValueError(str(number)) for number in range(size)])


def with_notes(notes: Make, base: Callable[[], BaseException] = ValueError) -> Specimen:
    """An exception whose notes are not what they should be."""

    def build() -> BaseException:
        error = base()
        object.__setattr__(error, "__notes__", notes())
        return error

    return build


class Slotted(Exception):
    """An exception that declares where its fields live."""

    __slots__ = ("field",)


class Guarded(Exception):
    """An exception that refuses every assignment."""

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name} is frozen")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{name} is frozen")


def _bitten() -> Iterator[tuple[str, Specimen]]:
    for escape in ESCAPES:
        name = escape.__name__
        for method in (
            "__str__",
            "__repr__",
            "__getattr__",
            "__getattribute__",
            "__eq__",
            "__hash__",
            "__bool__",
        ):
            yield f"{method} raises {name}", with_method(method, escape)
            yield f"{method} of a fault raises {name}", fault_with(**{method: biting(escape)})
        for method in ("summary", "own_fields", "state"):
            yield f"{method} of a fault raises {name}", fault_with(**{method: biting(escape)})
        for attribute in LOOKED_AT:
            yield f"{attribute} raises {name}", with_property(attribute, escape)
        for attribute in (
            "__cause__",
            "own_kind",
            "declared_kind",
            "message",
            "certainty",
            "details",
            "provider",
        ):
            yield f"{attribute} of a fault raises {name}", fault_with(**{attribute: biting_property(escape)})
        for attribute in ("__name__", "__mro__", "__module__", "__dict__", "__bases__", "__doc__"):
            yield f"metaclass {attribute} raises {name}", with_meta(attribute, biting_property(escape))
        for method in (
            "__instancecheck__",
            "__subclasscheck__",
            "__hash__",
            "__eq__",
            "__repr__",
            "__call__",
        ):
            yield f"metaclass {method} raises {name}", with_meta(method, biting(escape))
        yield f"metaclass __getattribute__ raises {name}", with_meta("__getattribute__", biting(escape))
        yield f"bytes raise {name}", with_attribute("body", around(always(escape), Bites))
        yield f"mapping raises {name}", make_fault(details=around(always(escape), BitingMapping))
        yield (
            f"pydantic errors raise {name}",
            from_vendor("pydantic_core", "ValidationError", errors=biting(escape)),
        )
        yield (
            f"pydantic rows raise {name}",
            from_vendor("pydantic_core", "ValidationError", errors=_rows(Bites(escape))),
        )


def _lying() -> Iterator[tuple[str, Specimen]]:
    for number, answer in enumerate((None, 5, b"x", TextThatLies("x"), "\ud800", "x" * 50_000)):
        name = type(answer).__name__
        yield f"__str__ answers {name} ({number})", with_attribute("__str__", always(answering(answer)))
        yield f"__repr__ answers {name} ({number})", with_attribute("__repr__", always(answering(answer)))
        yield f"summary answers {name} ({number})", fault_with(summary=answering(answer))
        yield f"message is {name} ({number})", make_fault(message=always(answer))
    for claimed in (Fault, int, BaseExceptionGroup, type, None):
        yield f"__class__ is {claimed}", with_attribute("__class__", always(claimed))
    yield "attributes are objects", lambda: made(a_class(__getattribute__=answering(object())))
    yield "attributes bite", lambda: made(a_class(__getattribute__=answering(Bites(Escape))))
    yield "__mro__ is a number", with_meta("__mro__", 5)
    yield "__mro__ is empty", with_meta("__mro__", ())
    yield "__name__ is a number", with_meta("__name__", 5)
    yield "__module__ is nothing", lambda: made(a_class(__module__=None))
    yield "__module__ lies", lambda: made(a_class(__module__=TextThatLies("openai")))
    yield "__qualname__ is broken", lambda: made(a_class(__qualname__="\ud800"))
    yield "class name of a megabyte", lambda: made(a_class("N" * 1_000_000, __module__="m" * 1_000_000))
    yield "class name acts", lambda: made(a_class("\x1b[31m\u202e[bold]`#\n"))
    yield "slots", lambda: Slotted("said")
    yield "guarded", lambda: Guarded("said")
    yield "plain BaseException", lambda: BaseException("said")
    yield "cancelled", GeneratorExit


def answering(answer: Any) -> Callable[..., Any]:
    """A method that answers with the same thing again and again."""

    def answers(*_args: Any, **_options: Any) -> Any:
        return answer

    return answers


def _rows(*locations: Any) -> Callable[..., Any]:
    """What `errors()` of a pydantic error answers, with these in the place of locations."""
    return answering([{"loc": one, "type": Bites(RuntimeError)} for one in locations])


def _vendors() -> Iterator[tuple[str, Specimen]]:
    endless = property(lambda _self: itertools.count())
    yield (
        "pydantic endless loc",
        from_vendor("pydantic_core", "ValidationError", errors=_rows(itertools.count())),
    )
    yield "pydantic odd loc", from_vendor("pydantic", "ValidationError", errors=_rows(5, None, ("\ud800",)))
    yield (
        "pydantic long loc",
        from_vendor("pydantic", "ValidationError", errors=_rows(*[["x" * 9_000] * 900] * 90)),
    )
    yield "pydantic errors is a number", from_vendor("pydantic_core", "ValidationError", errors=5)
    yield "jsonschema endless path", from_vendor("jsonschema", "ValidationError", absolute_path=endless)
    yield "jsonschema long path", from_vendor("jsonschema", "ValidationError", path=["x" * 9_000] * 9_000)
    yield "url error is its own reason", from_vendor("urllib", "URLError", reason=property(lambda self: self))
    yield "yaml mark bites", from_vendor("yaml", "YAMLError", problem_mark=Bites(Escape))
    yield (
        "yaml mark is huge",
        from_vendor("yaml", "YAMLError", problem_mark=type("M", (), {"line": 10**5000, "column": 1})),
    )
    yield "sqlite code is long", from_vendor("sqlite3", "Error", sqlite_errorname="SQLITE_BUSY" * 90_000)
    for value in (
        10**5_000,
        -(10**5_000),
        float("nan"),
        "7",
        None,
        HugeInt(10**5_000),
        Bites(RuntimeError),
        True,
    ):
        said = type(value).__name__
        yield f"return code is {said}", from_vendor("subprocess", "CalledProcessError", returncode=value)
        yield f"time limit is {said}", from_vendor("subprocess", "TimeoutExpired", timeout=value)
        yield f"exit code is {said}", around(always(value), SystemExit)
        yield f"errno is {said}", around(always(value), lambda number: OSError(number, "x"))
        yield f"line is {said}", from_vendor("json", "JSONDecodeError", lineno=value, colno=value)
        yield f"module is {said}", with_attribute("name", always(value), ModuleNotFoundError)


def _all_said(value: Any) -> ProviderMetadata:
    return ProviderMetadata(
        sdk=value, exception_type=value, status_code=value, code=value, request_id=value, retry_after=value,
        headers=value,
    )  # fmt: skip


def _saying(text: str) -> Fault:
    return Fault(kind="tool.failed", message=text, details={text: text})


def _advising(text: str) -> Fault:
    return Fault(
        kind="tool.failed",
        user_action=UserAction(ActionKind.DECIDE, text),
        fields_invalid=[text] * 90,
        provider=text,
        model=text,
        provider_metadata=ProviderMetadata(code=text, headers={"date": text}),
    )


def _faults() -> Iterator[tuple[str, Specimen]]:
    for number, make in enumerate(values()):
        yield f"details hold value {number}", make_fault(details=around(make, lambda value: {"held": value}))
        yield f"details are value {number}", make_fault(details=make)
        yield f"message is value {number}", make_fault(message=make)
        yield f"provider is value {number}", make_fault(provider=make, model=make)
        yield f"fields are value {number}", make_fault(fields_invalid=make)
        yield f"a field is value {number}", make_fault(fields_invalid=around(make, lambda value: [value]))
        yield (
            f"wait is value {number}",
            make_fault(not_before=around(make, lambda value: NotBefore(after=value))),
        )
        yield f"waiting is value {number}", make_fault(not_before=make)
        yield (
            f"wait until value {number}",
            make_fault(not_before=around(make, lambda value: NotBefore(after=1, at=value))),
        )
        yield f"action is value {number}", make_fault(user_action=make)
        yield (
            f"advice is value {number}",
            make_fault(user_action=around(make, lambda value: UserAction(ActionKind.DECIDE, value))),
        )
        yield f"metadata is value {number}", make_fault(provider_metadata=make)
        yield f"shortfall is value {number}", make_fault(resource_shortfall=make)
        yield (
            f"shortage is value {number}",
            make_fault(resource_shortfall=around(make, lambda value: ResourceShortfall(value, value, value))),
        )
        yield f"reply is value {number}", make_fault(provider_metadata=around(make, _all_said))
        for field in ("certainty", "blame", "retryable", "caller_facing"):
            yield f"{field} is value {number}", make_fault(**{field: make})
    for number, text in enumerate(TEXTS):
        yield f"fault says text {number}", around(always(text), _saying)
        yield f"error says text {number}", around(always(text), ValueError)
        yield f"advice is text {number}", around(always(text), _advising)


def _shapes() -> Iterator[tuple[str, Specimen]]:
    for link in ("__cause__", "__context__"):
        yield f"its own {link}", its_own(link)
        yield f"fault is its own {link}", its_own(link, Fault)
        for back in ("__cause__", "__context__"):
            yield f"circle of {link} and {back}", a_circle(link, back)
        yield f"10,000 by {link}", linked(10_000, link)
        yield f"10,000 faults by {link}", linked(10_000, link, lambda _: Fault())
    yield "circle through a group", a_circle_through_a_group
    yield "group of 10,000", lambda: a_crowd(10_000)
    yield "1,000 groups in groups", lambda: groups_in_groups(1_000)
    yield "the same group again and again", the_same_group_again_and_again
    yield "fault over the same group", lambda: Fault.wrap(the_same_group_again_and_again(), "wrapped")
    for number, make in enumerate(values()):
        yield f"notes are value {number}", with_notes(make)
        yield f"a note is value {number}", with_notes(around(make, lambda value: [value, "plain"]))
        yield f"notes of a fault are value {number}", with_notes(make, lambda: Fault(kind="tool.failed"))
        yield f"args hold value {number}", around(make, lambda value: ValueError("said", value))
        yield f"body is value {number}", with_attribute("body", make)
        yield f"prompt is value {number}", with_attribute("prompt", make)


def specimens() -> dict[str, Specimen]:
    """Every hostile exception, by what is wrong with it."""
    return dict(itertools.chain(_bitten(), _lying(), _vendors(), _faults(), _shapes()))
