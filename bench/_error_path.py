"""What one failure costs: describing it, sending the report through JSON, and keeping it."""

import tracemalloc
from collections.abc import Callable

import failwell
from bench import _by_hand as by_hand
from bench._measure import microseconds
from bench._table import Row, row
from failwell import errors
from failwell.errors import NotBefore
from failwell.errors.faults import ProviderTransient


def raised() -> ValueError:
    """A bare exception that was really raised."""
    try:
        float("warm")
    except ValueError as error:
        return error
    raise AssertionError("a word is not a number")


def chain() -> failwell.Fault:
    """A typed failure under two wrappers."""
    try:
        try:
            try:
                raise ProviderTransient(
                    kind="provider.rate_limited",
                    provider="openai",
                    provider_metadata=errors.ProviderMetadata(sdk="openai", status_code=429, request_id="r"),
                    not_before=NotBefore(after=7.5, source="header retry-after"),
                )
            except failwell.Fault as leaf:
                raise failwell.Fault(message="step failed") from leaf
        except failwell.Fault as step:
            raise failwell.Fault(message="run failed") from step
    except failwell.Fault as error:
        return error


def describing(*, quick: bool = False) -> list[Row]:
    """`describe`, beside a lookup and a report that were written by hand."""
    fresh, caught, wrapped = ValueError("warm"), raised(), chain()
    calls: dict[str, Callable[[], object]] = {
        "lookup": lambda: by_hand.lookup(caught),
        "by hand": lambda: by_hand.report(caught),
        "by hand, chain": lambda: by_hand.report(wrapped),
        "fresh": lambda: failwell.describe(fresh),
        "raised": lambda: failwell.describe(caught),
        "chain": lambda: failwell.describe(wrapped),
        "full": lambda: failwell.describe(caught, policy="full"),
    }
    spent = microseconds(calls, rounds=3 if quick else 15, number=20 if quick else 500)
    beside = {"lookup": spent["lookup"], "by hand": spent["by hand"]}
    beside_chain = {"lookup": spent["lookup"], "by hand": spent["by hand, chain"]}

    def one(name: str, key: str, aim: float | None = None) -> Row:
        return row(
            "describe", name, "µs", spent[key], against=beside_chain if key == "chain" else beside, aim=aim
        )

    return [
        row("describe", "by hand: a lookup along the MRO", "µs", spent["lookup"]),
        row("describe", "by hand: a report of twelve fields", "µs", spent["by hand"]),
        row("describe", "by hand: the same for the chain", "µs", spent["by hand, chain"]),
        one("an exception without a traceback", "fresh", 12),
        one("an exception that was raised", "raised", 12),
        one("a fault under two wrappers", "chain"),
        one("an exception that was raised, policy full", "full"),
    ]


def sending(*, quick: bool = False) -> list[Row]:
    """`to_json`, `from_json` and both, beside the report that was written by hand."""
    report, long, hand = failwell.describe(raised()), failwell.describe(chain()), by_hand.report(raised())
    text, long_text, hand_text = report.to_json(), long.to_json(), by_hand.to_json(hand)
    calls: dict[str, Callable[[], object]] = {
        "hand": lambda: by_hand.from_json(by_hand.to_json(hand)),
        "hand to": lambda: by_hand.to_json(hand),
        "hand from": lambda: by_hand.from_json(hand_text),
        "to": report.to_json,
        "from": lambda: failwell.ErrorReport.from_json(text),
        "trip": lambda: failwell.ErrorReport.from_json(report.to_json()),
        "long trip": lambda: failwell.ErrorReport.from_json(long.to_json()),
        "long read": lambda: failwell.ErrorReport.read(long_text),
    }
    spent = microseconds(calls, rounds=3 if quick else 15, number=20 if quick else 500)
    trip = {"by hand": spent["hand"]}
    return [
        row("wire", "by hand: round trip of twelve fields", "µs", spent["hand"]),
        row("wire", "to_json", "µs", spent["to"], against={"by hand": spent["hand to"]}),
        row("wire", "from_json", "µs", spent["from"], against={"by hand": spent["hand from"]}),
        row("wire", "round trip", "µs", spent["trip"], against=trip, aim=20),
        row("wire", "round trip, fault under two wrappers", "µs", spent["long trip"], against=trip),
        row("wire", "read, tolerant, fault under two wrappers", "µs", spent["long read"], against=trip),
    ]


def keeping(*, quick: bool = False) -> list[Row]:
    """Bytes that one kept report holds."""
    caught, wrapped = raised(), chain()
    makers: dict[str, Callable[[], object]] = {
        "by hand: a report of twelve fields": lambda: by_hand.report(caught),
        "a report": lambda: failwell.describe(caught),
        "a report of a fault under two wrappers": lambda: failwell.describe(wrapped),
    }
    held = {
        name: [_held(make, 100 if quick else 2_000) for _ in range(2 if quick else 5)]
        for name, make in makers.items()
    }
    hand = next(iter(held.values()))
    return [
        row("memory", name, "B", sizes, against={} if sizes is hand else {"by hand": hand})
        for name, sizes in held.items()
    ]


def _held(make: Callable[[], object], number: int) -> float:
    make()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = [make() for _ in range(number)]
    taken = (tracemalloc.get_traced_memory()[0] - before) / len(kept)
    tracemalloc.stop()
    return taken
