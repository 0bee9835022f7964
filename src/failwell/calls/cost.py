"""What tokens cost, in whole micro-cents: 100,000,000 of them are one dollar.

Whole numbers add up without drifting, and half a micro-cent rounds up. A model without a price costs
an unknown amount, which is recorded as such and never as zero.
"""

from collections.abc import Mapping
from json import dumps
from typing import Any

from failwell.adapters.replies import take, whole
from failwell.calls.budget import to_micro_cents
from failwell.errors.frozen import frozen
from failwell.errors.report import ErrorReport

_MILLION = 1_000_000
_DEFAULT_OUTPUT = 4_096
"""Tokens assumed for an answer without a limit."""
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


@frozen
class Price:
    """Micro-cents per million tokens of each class."""

    input: int
    output: int
    cache_read: int | None = None
    """Left out, cached input costs what other input costs."""
    cache_write: int = 0

    def __post_init__(self) -> None:
        if min(self.input, self.output, self.cache_read or 0, self.cache_write) < 0:
            raise ValueError("a price must not be negative")

    @classmethod
    def dollars(
        cls,
        input: float | str,  # noqa: A002  (what the class is called on every price list)
        output: float | str,
        *,
        cache_read: float | str | None = None,
        cache_write: float | str = 0,
    ) -> "Price":
        """A price as providers publish it: dollars per million tokens."""
        return cls(
            input=to_micro_cents(input),
            output=to_micro_cents(output),
            cache_read=None if cache_read is None else to_micro_cents(cache_read),
            cache_write=to_micro_cents(cache_write),
        )

    def of(self, usage: Mapping[str, int]) -> int:
        """What `usage` costs: each class rounded half up, then added."""
        read = self.input if self.cache_read is None else self.cache_read
        return (
            _share(usage.get("input_tokens", 0), self.input)
            + _share(usage.get("output_tokens", 0), self.output)
            + _share(usage.get("cache_read_tokens", 0), read)
            + _share(usage.get("cache_write_tokens", 0), self.cache_write)
        )


class Prices:
    """Looks up what a model costs: your own prices first, then the public list if `genai-prices` is installed."""

    def __init__(self, own: Mapping[str, Price] | None = None, *, public: bool = True) -> None:
        self._own = dict(own or {})
        """By `provider/model`, or by the model alone."""
        self._public = public

    def cost(self, provider: str, model: str, usage: Mapping[str, int]) -> int | None:
        """Micro-cents, or `None` where no price is known."""
        price = self._own.get(f"{provider}/{model}") or self._own.get(model)
        if price is not None:
            return price.of(usage)
        return _public_cost(provider, model, usage) if self._public else None


def estimate(
    prices: Prices, provider: str, model: str, request: Mapping[str, Any], positional: tuple[Any, ...] = ()
) -> int | None:
    """The most that a call is likely to cost: its text as tokens, and an answer as long as allowed."""
    limit = next((value for name in _LIMITS if isinstance(value := request.get(name), int)), _DEFAULT_OUTPUT)
    text = 0
    for value in (*request.values(), *positional):
        text += len(value) if isinstance(value, str) else _length(value)
    return prices.cost(provider, model, {"input_tokens": -(-text // 3), "output_tokens": limit})


def _length(value: object) -> int:
    try:
        return len(dumps(value, default=str)) if isinstance(value, list | dict | tuple) else 0
    except (TypeError, ValueError, RecursionError):
        # It cannot be written as JSON, so its length is unknown.
        return 0


def _public_cost(provider: str, model: str, usage: Mapping[str, int]) -> int | None:
    from importlib import import_module

    try:
        genai_prices: Any = import_module("genai_prices")
    except ImportError:
        return None
    cache_read, cache_write = usage.get("cache_read_tokens", 0), usage.get("cache_write_tokens", 0)
    # The list counts cached tokens as a part of the input.
    usage_record = genai_prices.Usage(
        input_tokens=usage.get("input_tokens", 0) + cache_read + cache_write,
        output_tokens=usage.get("output_tokens", 0),
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_write,
    )
    try:
        price = genai_prices.calc_price(usage_record, model_ref=model, provider_id=provider)
    except (LookupError, ValueError):
        return None
    return to_micro_cents(str(price.total_price))


def _share(tokens: int, rate: int) -> int:
    return (tokens * rate * 2 + _MILLION) // (2 * _MILLION)


def usage_in(report: ErrorReport) -> dict[str, int]:
    """The tokens that a failed call reported before it failed, as far as its report knows."""
    usage: object = report.details.get("usage")
    if usage is None:
        return {}
    counts = {name: whole(take(usage, name)) for name in ("input_tokens", "output_tokens")}
    return {name: count for name, count in counts.items() if count is not None}
