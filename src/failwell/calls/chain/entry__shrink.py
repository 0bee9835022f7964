"""A call whose messages are shortened once, where they are too long for the model."""

from collections.abc import Awaitable, Callable, Mapping
from operator import eq
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

from failwell.errors.foreign_objects import safe_call

if TYPE_CHECKING:
    from failwell.calls.operation import Operation

Shorten: TypeAlias = Callable[[list[Any]], Any]
"""Takes messages and returns shorter ones; `None` or the same messages where it cannot. May be async in async code."""
_NAMES = ("messages", "contents", "input")
"""What providers call the messages of a request."""


class ShortenedCall:
    """A function with its arguments, of which the messages can be replaced between two attempts."""

    __slots__ = ("_function", "_shrink", "args", "kwargs")

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        shrink: Shorten | None,
    ) -> None:
        self._function = function
        self._shrink = shrink
        self.args = args
        self.kwargs = kwargs

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        """Make the call with the arguments in force, whatever it is called with."""
        return self._function(*self.args, **self.kwargs)

    def under(self, operation: "Operation") -> Self:
        """Let `operation` shorten the messages."""
        operation.shorten = self.shorten
        return self

    def shorten(self) -> bool | Awaitable[bool]:
        """Replace the messages by shorter ones; whether there are any and they could be shortened."""
        place = self._place()
        if place is None or self._shrink is None:
            return False
        messages = self.args[place] if isinstance(place, int) else self.kwargs[place]
        shorter = self._shrink(messages)
        if hasattr(shorter, "__await__"):
            return self._replace_later(place, messages, shorter)
        return self._replace(place, messages, shorter)

    def _place(self) -> int | str | None:
        for name in _NAMES:
            if isinstance(self.kwargs.get(name), list):
                return name
        return next((place for place, value in enumerate(self.args) if isinstance(value, list)), None)

    async def _replace_later(self, place: int | str, before: list[Any], after: Awaitable[Any]) -> bool:
        return self._replace(place, before, await after)

    def _replace(self, place: int | str, before: list[Any], after: Any) -> bool:
        # Messages of a framework are compared by code of its own.
        if after is None or after is before or safe_call(cast("Any", eq), None, after, before) is True:
            return False
        if isinstance(place, int):
            self.args = (*self.args[:place], after, *self.args[place + 1 :])
        else:
            self.kwargs = {**self.kwargs, place: after}
        return True
