"""Code of an author who is not known here is never run to describe, filter or send a failure."""

import copy
import enum
import io
import json
import logging
import logging.handlers
import pickle
import queue
import subprocess
from collections import ChainMap, UserDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import httpx
import jsonschema
import multidict
import openai
import pydantic
import pytest
import requests
import structlog
import urllib3
from requests.structures import CaseInsensitiveDict

import failwell
from failwell import Fault
from failwell.adapters.exception_text import message_of as message_of_exception
from failwell.adapters.exception_text import repr_of
from failwell.capability import TracebackPolicy
from failwell.delivery.logging import JsonFormatter, ReportFilter, message_of
from failwell.delivery.logging_values import DeferredText
from failwell.delivery.plain_text import bounded_str, json_text
from failwell.errors.headers import lower_headers
from failwell.errors.redact import redact_value
from failwell.errors.safe_str import arguments_text, is_mapping, is_printable, plain, words_of
from failwell.integrations.structlog import report_exception
from failwell.sentry import before_send
from tests.specimens import each

CALLS: list[str] = []
"""Every call of code that would never return."""


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    CALLS.clear()


def made(make: Callable[..., Any], *arguments: Any) -> Any:
    """What `make` returns, whatever it called."""
    result = make(*arguments)
    CALLS.clear()
    return result


def endless(name: str) -> Callable[..., Any]:
    """A method that stands for one that never returns."""

    def method(self: object, *_: Any) -> Any:
        CALLS.append(f"{type(self).__name__}.{name}")
        raise RuntimeError("it would never return")

    return method


PRINTING = ("__str__", "__repr__", "__format__")
WALKING = ("__iter__", "__len__", "__bool__", "__getitem__", "__contains__", "items", "keys", "values", "get")


def methods(*names: str) -> dict[str, Any]:
    return {name: endless(name) for name in names}


Thing: Any = type("Thing", (), methods(*PRINTING, "__int__", "__float__", "__index__"))
Text: Any = type("Text", (str,), methods(*PRINTING))
Number: Any = type("Number", (int,), methods(*PRINTING, "__int__", "__index__"))
Table: Any = type("Table", (Mapping,), methods(*PRINTING, *WALKING))
Dictionary: Any = type("Dictionary", (dict,), methods(*PRINTING, *WALKING, "copy"))
Row: Any = type("Row", (list,), methods(*PRINTING, "__iter__", "__len__", "__bool__", "__getitem__"))
Bag: Any = type("Bag", (set,), methods(*PRINTING, "__iter__", "__len__", "__bool__"))
Printing: Any = type("Printing", (Exception,), methods(*PRINTING))
PrintingMissing: Any = type("PrintingMissing", (KeyError,), methods(*PRINTING))
PrintingLost: Any = type("PrintingLost", (OSError,), methods(*PRINTING))
PrintingGroup: Any = type("PrintingGroup", (ExceptionGroup,), methods(*PRINTING))
PrintingUnlikeItsLibrary: Any = type("PrintingUnlikeItsLibrary", (openai.APIError,), methods(*PRINTING))
Pretending: Any = type("Pretending", (Exception,), {**methods(*PRINTING), "__module__": "openai"})


class Status(enum.Enum):
    """As programs have them."""

    OPEN = 1

    __str__ = endless("__str__")
    __repr__ = endless("__repr__")
    __format__ = endless("__format__")


@dataclass(repr=False)
class Order:
    """As programs have them."""

    number: int

    __str__ = endless("__str__")
    __repr__ = endless("__repr__")


class Data(pydantic.BaseModel):
    """A model of the program, printed by pydantic from what it holds."""

    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    inside: Any


VALUES: dict[str, Callable[[], Any]] = {
    "object": Thing,
    "text": lambda: Text("said"),
    "number": lambda: Number(7),
    "mapping": Table,
    "dict": lambda: Dictionary(a="b"),
    "list": lambda: Row(["a"]),
    "set": lambda: Bag({"a"}),
    "exception": lambda: Printing("said"),
    "member of an enumeration": lambda: Status.OPEN,
    "dataclass": lambda: Order(17),
    "model": lambda: Data(inside=Thing()),
    "inside a dict": lambda: {"a": [Thing()]},
    "key of a dict": lambda: {Thing(): 1},
    "inside a tuple": lambda: (1, (Thing(),)),
    "inside a namespace": lambda: SimpleNamespace(a=Thing()),
    "inside a view": lambda: MappingProxyType(Table()),
    "inside a chain": lambda: ChainMap({}, Table()),
    "inside a wrapper": lambda: wrapping(Table()),
    "method of an object": lambda: Thing().__int__,
    "inside a built-in exception": lambda: ValueError("said", Thing()),
    "inside a library's exception": lambda: requests.ConnectionError(Thing()),
}


def wrapping(table: Any) -> Any:
    wrapper: UserDict[str, Any] = UserDict()
    wrapper.data = table
    return wrapper


def _with_attribute(name: str, value: Any, module: str = __name__, base: type[Exception] = Exception) -> Any:
    error: Any = type("RateLimitError", (base,), {"__module__": module})("said")
    setattr(error, name, value)
    return error


def _process_error(value: Any) -> Exception:
    return subprocess.CalledProcessError(1, value, output=value, stderr=value)


def _validation_error(value: Any) -> Exception:
    class Model(pydantic.BaseModel):
        amount: int

    with pytest.raises(pydantic.ValidationError) as caught:
        Model.model_validate({"amount": [value]})
    return caught.value


def _caused_by(value: Any) -> Exception:
    error = ValueError("outer")
    error.__cause__ = RuntimeError("inner", value)
    return error


CARRIERS: dict[str, Callable[[Any], BaseException]] = {
    "argument": ValueError,
    "one of the arguments": lambda value: ValueError("said", value),
    "argument of a key error": KeyError,
    "file name": lambda value: OSError(2, "missing", value),
    "error number": lambda value: OSError(value, "missing"),
    "import": ImportError,
    "syntax": lambda value: SyntaxError("said", (value, 1, 1, "x")),
    "argument of what prints itself": Printing,
    "attribute of what prints itself": lambda value: _with_attribute("order", value, base=Printing),
    "argument of an SDK's": httpx.ConnectError,
    "nested in an SDK's": lambda value: requests.ConnectionError(urllib3.exceptions.HTTPError(value)),
    "command": _process_error,
    "schema": lambda value: jsonschema.ValidationError("said", instance=value, validator="type"),
    "input": _validation_error,
    "body": lambda value: _with_attribute("body", value, "openai"),
    "headers": lambda value: _with_attribute("headers", value, "openai"),
    "response": lambda value: _with_attribute(
        "response", SimpleNamespace(headers=value, status_code=429), "openai"
    ),
    "address": lambda value: _with_attribute("request", SimpleNamespace(url=value), "openai"),
    "messages": lambda value: _with_attribute("messages", value, "openai"),
    "notes": lambda value: _with_attribute("__notes__", value),
    "cause": _caused_by,
    "member": lambda value: ExceptionGroup("several", [ValueError(value)]),
    "details": lambda value: Fault(kind="tool.failed", details={"it": value}),
    "all details": lambda value: Fault(kind="tool.failed", details=value),
    "invalid fields": lambda value: Fault(kind="tool.failed", fields_invalid=[value]),
    "provider": lambda value: Fault(kind="tool.failed", provider=value),
}


@each("carrier", CARRIERS)
@each("name", VALUES)
def test_no_unknown_code_runs_to_describe_to_log_and_to_send(name: str, carrier: str) -> None:
    error = made(CARRIERS[carrier], VALUES[name]())

    reports = [failwell.describe(error, policy=policy) for policy in TracebackPolicy]
    exc_info: Any = (type(error), error, None)
    record = logging.makeLogRecord({"msg": "saw %s", "args": (error,), "exc_info": exc_info})
    ReportFilter().filter(record)
    rendered = report_exception(None, "error", {"event": "failed", "exc_info": error})
    event: Any = {"event_id": "1", "exception": {"values": [{"type": "X", "value": "said"}]}}
    sent = before_send(event, {"exc_info": exc_info})

    assert CALLS == []
    for text in (
        *(report.to_json() for report in reports),
        record.getMessage(),
        str(rendered),
        json.dumps(sent),
    ):
        assert len(text) < 100_000
    assert "describe_failed" not in reports[0].to_json()
    assert CALLS == []


@pytest.mark.parametrize(
    "error",
    [
        Printing("said"),
        PrintingMissing("said"),
        PrintingLost(2, "said"),
        PrintingGroup("said", [Printing("inner")]),
        PrintingUnlikeItsLibrary("said", cast("Any", None), body=None),
        Pretending("said"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_the_arguments_are_the_words_of_what_prints_itself(error: BaseException) -> None:
    for policy in TracebackPolicy:
        failwell.describe(error, policy=policy)

    report = failwell.describe(error, policy="full")

    assert CALLS == []
    assert "said" in words_of(error)
    assert "said" in report.message
    assert report.internal is not None
    assert report.internal.repr.startswith(type(error).__name__)
    assert "said" in cast("str", report.internal.traceback)


@each("name", VALUES)
def test_a_value_of_an_unknown_author_is_named_or_read_as_the_built_in_class_sees_it(name: str) -> None:
    value = made(VALUES[name])

    shown = (
        repr(plain(value)),
        json_text({"it": value}),
        bounded_str(plain(value)),
        str(redact_value([value])),
    )

    assert CALLS == []
    assert not is_printable(value)
    assert all(shown)


def test_what_is_not_plain_is_named_by_its_type() -> None:
    assert arguments_text(ValueError("a", Thing(), [Row(["b", Thing()])], Text("c"), Number(7))) == (
        "('a', <Thing>, [['b', <Thing>]], 'c', 7)"
    )
    assert arguments_text(ValueError(Status.OPEN)) == "Status.OPEN"
    assert arguments_text(ValueError(Printing("b", Thing()))) == "Printing('b', <Thing>)"
    assert redact_value({"a": Table(), "b": Thing(), "c": Dictionary(d=1)}) == {
        "a": "<Table>",
        "b": "<Thing>",
        "c": {"d": 1},
    }
    assert CALLS == []


def test_a_method_that_somebody_put_into_a_class_of_a_library_is_not_called() -> None:
    class Library(Exception):
        pass

    Library.__module__ = "openai"
    Library.__str__ = endless("__str__")

    assert words_of(Library("said")) == "said"
    assert CALLS == []


def test_a_subclass_with_code_of_its_own_is_not_printed_by_the_method_of_its_library() -> None:
    def ignore(_: object, value: int) -> None:
        del value

    code = property(endless("returncode"), ignore)
    reading: Any = type("Reading", (subprocess.CalledProcessError,), {"returncode": code})

    class Naming(subprocess.CalledProcessError):
        def __init__(self) -> None:
            super().__init__(3, "make")

    assert words_of(reading(3, "make")) == "(3, 'make')"
    assert words_of(Naming()) == "Command 'make' returned non-zero exit status 3."
    assert CALLS == []


def test_a_metaclass_is_not_asked() -> None:
    class Meta(type):
        __hash__ = endless("__hash__")
        __eq__ = endless("__eq__")
        __repr__ = endless("__repr__")

        def __getattribute__(cls, name: str) -> Any:
            return endless("__getattribute__")(cls)

    value = Meta("Odd", (), {})()

    assert not is_printable(value)
    assert not is_mapping(value)
    assert repr(plain([value])) == "[<Odd>]"
    assert repr(plain([type(value)])) == "[<Meta>]"
    assert CALLS == []


# What operators and rules keep.


class OrderError(Exception):
    """As authors write them."""

    def __init__(self, message: str, order: int, **more: Any) -> None:
        super().__init__(message, order)
        self.message = message
        self.order = order
        self.__dict__.update(more)

    def __str__(self) -> str:
        return endless("__str__")(self)

    __repr__ = endless("__repr__")


def test_arguments_and_plain_attributes_are_recorded_of_what_prints_itself() -> None:
    error = OrderError("sold out", 17, items=["a", 2], customer=None, owner=Thing(), _state="hidden")

    report = failwell.describe(error, policy="full")

    assert report.message == "sold out; order=17; items=['a', 2]; customer=None"
    assert report.internal is not None
    assert report.internal.repr == "OrderError('sold out', 17)"
    assert cast("str", report.internal.traceback).endswith(
        "OrderError: sold out; order=17; items=['a', 2]; customer=None\n"
    )
    assert CALLS == []


def test_attributes_are_masked_and_those_with_prompts_and_replies_are_left_out() -> None:
    error = OrderError(
        "sold out", 17, api_key="short", prompt="Dear customer", body={"a": "b"}, note="x" * 5_000
    )

    text = message_of_exception(error)

    assert text.startswith("sold out; order=17; api_key=[redacted]; note=xxx")
    assert "Dear" not in text
    assert len(text) <= 2_000


def test_no_attribute_is_recorded_of_what_prints_its_arguments() -> None:
    class Plain(Exception):
        def __init__(self) -> None:
            super().__init__("sold out")
            self.order = 17

    assert failwell.describe(Plain(), policy="full").message == "sold out"


def _invalid(value: Any) -> Exception:
    class Model(pydantic.BaseModel):
        amount: int

    with pytest.raises(pydantic.ValidationError) as caught:
        Model.model_validate({"amount": value})
    return caught.value


def _not_json() -> Exception:
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads("{")
    return caught.value


REAL: dict[str, tuple[Callable[[], BaseException], str]] = {
    "plain": (lambda: ValueError("said"), "said"),
    "two arguments": (lambda: ValueError("said", 2), "('said', 2)"),
    "an object without a text": (lambda: ValueError(len), "<built-in function len>"),
    "key error": (lambda: KeyError("key"), "'key'"),
    "os error": (lambda: OSError(2, "No such file", "a.txt"), "[Errno 2] No such file: 'a.txt'"),
    "unicode": (
        lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
    ),
    "json": (_not_json, "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
    "process": (
        lambda: subprocess.CalledProcessError(3, ["make", "all"]),
        "Command '['make', 'all']' returned non-zero exit status 3.",
    ),
    "requests": (
        lambda: requests.ConnectionError(
            urllib3.exceptions.MaxRetryError(
                cast("Any", None),
                "/v1",
                urllib3.exceptions.ProtocolError("Connection aborted.", OSError(104, "reset")),
            )
        ),
        "Max retries exceeded with url: /v1 (Caused by ProtocolError('Connection aborted.', ConnectionResetError(104, 'reset')))",
    ),
    "pydantic": (
        lambda: _invalid("many"),
        "1 validation error for Model\namount\n  Input should be a valid integer",
    ),
    "jsonschema": (
        lambda: jsonschema.ValidationError(
            "it is no number", validator="type", instance="x", schema={"type": "number"}
        ),
        "it is no number",
    ),
    "group": (lambda: ExceptionGroup("several", [ValueError("a")]), "several (1 sub-exception)"),
    "subclass of an SDK's class": (lambda: type("Mine", (openai.OpenAIError,), {})("said"), "said"),
}


@each("name", REAL)
def test_what_python_and_known_libraries_print_is_read_and_recorded(name: str) -> None:
    make, words = REAL[name]

    assert words in words_of(make())
    assert type(make()).__name__ in repr_of(make()) or "pydantic" in name


def test_a_validation_error_with_a_value_of_an_unknown_author_keeps_its_fields() -> None:
    report = failwell.describe(made(_invalid, Thing()), policy="full")

    assert CALLS == []
    assert report.message == "The data does not fit its model: `amount` (int_type)."


def test_mappings_of_python_and_of_known_libraries_are_read() -> None:
    headers = {"Retry-After": "7"}
    read: list[Any] = [
        headers,
        Dictionary(headers),
        MappingProxyType(headers),
        ChainMap(headers),
        UserDict(headers),
        httpx.Headers(headers),
        CaseInsensitiveDict(headers),
        multidict.CIMultiDictProxy(multidict.CIMultiDict(headers)),
        urllib3.HTTPHeaderDict(headers),
    ]

    assert [lower_headers(each_one) for each_one in read] == [{"retry-after": "7"}] * len(read)
    assert [{key.lower(): value for key, value in redact_value(each_one).items()} for each_one in read] == (
        [{"retry-after": "7"}] * len(read)
    )
    assert lower_headers(Table()) == {}
    assert CALLS == []


def test_a_fault_is_printed_by_its_author() -> None:
    class SoldOut(Fault, kind="acme.sold_out"):
        order: int

        def summary(self) -> str:
            return f"order {self.order} is sold out"

    assert failwell.describe(SoldOut(order=17)).message == "order 17 is sold out"
    assert words_of(SoldOut(order=17)) == "order 17 is sold out"


# Logs: the handler prints, as it would without failwell.


class Speaker:
    """Counts how often it is printed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.times = 0

    def __str__(self) -> str:
        self.times += 1
        return self.text

    def __int__(self) -> int:
        self.times += 1
        return 7


SECRET = "sk-" + "q1w2e3r4t5y6u7i8o9"


class Speaking(Mapping[str, Any]):
    """A mapping of the program."""

    def __init__(self, **values: Any) -> None:
        self.values_, self.times = values, 0

    def __getitem__(self, name: str) -> Any:
        self.times += 1
        return self.values_[name]

    def __iter__(self) -> Iterator[str]:
        self.times += 1
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)

    def __repr__(self) -> str:
        self.times += 1
        return f"Speaking({self.values_})"


LOGGED: dict[str, tuple[Callable[[Speaker], dict[str, Any]], str]] = {
    "text": (lambda speaker: {"msg": "saw %s", "args": (speaker,)}, "saw key [redacted]"),
    "repr": (lambda speaker: {"msg": "saw %r", "args": (speaker,)}, "saw key [redacted]"),
    "number": (lambda speaker: {"msg": "saw %d", "args": (speaker,)}, "saw 7"),
    "mapped": (lambda speaker: {"msg": "saw %(it)s", "args": {"it": speaker}}, "saw key [redacted]"),
    "message": (lambda speaker: {"msg": speaker, "args": ()}, "key [redacted]"),
    "message with arguments": (lambda speaker: {"msg": speaker, "args": None}, "key [redacted]"),
    "own mapping": (
        lambda speaker: {"msg": "saw %(it)s", "args": Speaking(it=speaker)},
        "saw key [redacted]",
    ),
    "own mapping, whole": (
        lambda _: {"msg": "saw %s", "args": Speaking(a=SECRET)},
        "saw Speaking({'a': '[redacted]'})",
    ),
    "beside others": (lambda speaker: {"msg": "%s %s %d", "args": ([1], speaker, 3)}, "[1] key [redacted] 3"),
}


@each("name", LOGGED)
def test_the_filter_leaves_it_to_the_handler_to_print_an_object(name: str) -> None:
    fields, expected = LOGGED[name]
    speaker = Speaker(f"key {SECRET}")
    record = logging.makeLogRecord(fields(speaker))
    mapping: Any = record.args

    assert ReportFilter().filter(record)
    assert ReportFilter().filter(record)

    assert speaker.times == 0
    assert type(record.msg) is DeferredText
    assert type(mapping) is not Speaking or mapping.times == 0
    assert logging.Formatter("%(message)s").format(record) == expected
    speaker.text = "another text"
    assert record.getMessage() == expected
    assert json.loads(JsonFormatter().format(record))["message"] == expected
    assert speaker.times <= 1


def test_the_message_of_a_record_with_an_object_is_a_text_when_it_leaves_the_process() -> None:
    def filtered() -> logging.LogRecord:
        record = logging.makeLogRecord({"msg": "saw %s", "args": (Speaker(f"key {SECRET}"),)})
        ReportFilter().filter(record)
        return record

    sent = pickle.loads(logging.handlers.SocketHandler("localhost", 0).makePickle(filtered())[4:])
    waiting: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    logging.handlers.QueueHandler(waiting).emit(filtered())

    assert sent["msg"] == "saw key [redacted]"
    assert waiting.get_nowait().msg == "saw key [redacted]"
    assert pickle.loads(pickle.dumps(filtered())).msg == "saw key [redacted]"
    assert copy.deepcopy(filtered()).msg == "saw key [redacted]"
    assert copy.copy(filtered()).getMessage() == "saw key [redacted]"
    assert f"{filtered().msg:>20}" == "  saw key [redacted]"


def test_an_object_of_an_unknown_author_that_no_handler_prints_is_never_printed() -> None:
    logger = logging.Logger("app")  # noqa: LOG001  (one that nobody else can hear)
    handler = logging.NullHandler()
    handler.addFilter(ReportFilter())
    logger.addHandler(handler)

    logger.error("saw %s", Thing())
    logger.error("saw %d", Thing())
    logger.error(Thing())
    logger.error("saw", extra={"it": Thing(), "table": Table(), "row": Row([Thing()]), "order": Order(1)})

    assert CALLS == []


@pytest.mark.parametrize("template", ["%s", "%r", "%d", "%.1f", "%(a)s"])
@each("name", VALUES)
def test_the_filter_runs_no_unknown_code(name: str, template: str) -> None:
    value = made(VALUES[name])
    arguments: Any = {"a": value} if template == "%(a)s" else (value,)
    record = logging.makeLogRecord({"msg": f"saw {template}", "args": arguments, "it": value})

    ReportFilter().filter(record)

    assert CALLS == []
    assert "saw" in message_of(record)


def test_structlog_gets_a_text_that_is_made_when_it_is_rendered() -> None:
    speaker = Speaker(f"key {SECRET}")

    event = report_exception(None, "info", {"event": "saw", "it": speaker, "other": Thing()})
    spoken_before = speaker.times
    out = io.StringIO()
    steps: list[Any] = [report_exception, structlog.processors.JSONRenderer()]
    structlog.wrap_logger(structlog.PrintLogger(out), processors=steps).info(
        "saw", it=Speaker(f"key {SECRET}")
    )

    assert (spoken_before, CALLS) == (0, [])
    assert str(event["it"]) == "key [redacted]"
    assert json.loads(out.getvalue()) == {"event": "saw", "it": "key [redacted]"}


@each("name", VALUES)
def test_structlog_and_sentry_run_no_unknown_code(name: str) -> None:
    value = made(VALUES[name])
    event: Any = {
        "event_id": "1",
        "extra": {"it": value},
        "tags": {"it": value},
        "breadcrumbs": [{"data": value}],
        "contexts": {"it": {"a": value}},
        "logentry": {"message": value, "params": [value]},
        "request": {"method": value, "headers": value},
        "exception": {"values": [{"type": value, "value": value}]},
    }

    report_exception(None, "error", {"event": "failed", "it": value})
    sent = before_send(event, {"exc_info": (ValueError, ValueError("said"), None)})

    assert CALLS == []
    assert sent["event_id"] == "1"
