"""A retry budget that successes refill: when a provider is down, retries stop instead of piling up.

First calls are free. A retry costs a token, a success gives a part of one back, so in a long outage
the extra load stays a small share of the ordinary load however many clients there are.
"""

from failwell.calls.argument_checks import check_number
from failwell.errors.frozen import frozen


@frozen
class Bucket:
    """How many retries may still be made. A value: taking and giving back make a new one."""

    tokens: float = 10.0
    most: float = 10.0
    earned: float = 0.1
    """Tokens that one success gives back."""

    def __post_init__(self) -> None:
        check_number("most", self.most)
        check_number("tokens", self.tokens, most=self.most)
        check_number("earned", self.earned)

    def take(self) -> "Bucket | None":
        """The bucket after one retry, or `None` if it is empty."""
        if self.tokens < 1:
            return None
        return Bucket(tokens=self.tokens - 1, most=self.most, earned=self.earned)

    def give(self) -> "Bucket":
        """The bucket after one success."""
        if self.tokens >= self.most:
            return self
        return Bucket(tokens=min(self.most, self.tokens + self.earned), most=self.most, earned=self.earned)
