"""Whether a request can be taken in at all: everything that is wrong with it is named at once."""

from json import JSONEncoder
from math import isfinite

from failwell.fault.capability import CapabilityInputError
from failwell.jobs.child.depth import DEEPEST, is_too_deep
from failwell.jobs.frames import LARGEST
from failwell.jobs.job import JobRequest

MOST_PRIORITY = 1_000_000
MOST_BYTES = LARGEST - 4096
"""Of the arguments as JSON, with the name of the action: what fits into one frame with a little around it."""
_LONGEST_KEY = 500


def check_request(request: JobRequest, *, is_taken: bool = False) -> JobRequest:
    """`request` itself. A stream needs somebody who takes its items: `is_taken`.

    Raises:
        CapabilityInputError: something in it cannot be used; every such field is named.
    """
    wrong: dict[str, str] = {}
    if not is_priority(request.priority):
        wrong["priority"] = f"is a whole number between -{MOST_PRIORITY:,} and {MOST_PRIORITY:,}"
    if request.timeout is not None and not (isfinite(request.timeout) and request.timeout > 0):
        wrong["timeout"] = "is a number of seconds above 0"
    if request.deadline is not None and request.deadline.tzinfo is None:
        wrong["deadline"] = "is a time with its zone"
    if request.key is not None and not _is_key(request.key):
        wrong["key"] = f"is a text of 1 to {_LONGEST_KEY} characters"
    if request.stream and not is_taken:
        wrong["stream"] = "is for whoever takes the items as they come, with `Runtime.stream`"
    if request.stream and request.key is not None:
        wrong["key"] = "cannot be given for a stream, whose items are not kept for a second taker"
    heavy = _too_heavy(request)
    if heavy is not None:
        wrong["arguments"] = heavy
    most: object = request.control.get("max_attempts", 1)
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        wrong["control.max_attempts"] = "is a whole number from 1"
    idempotent: object = request.control.get("idempotent")
    if idempotent is not None and not isinstance(idempotent, bool):
        wrong["control.idempotent"] = "is true or false"
    if wrong:
        told = "; ".join(f"`{name}` {what}" for name, what in wrong.items())
        raise CapabilityInputError(f"the job cannot be taken in: {told}", fields_invalid=sorted(wrong))
    return request


_encode = JSONEncoder(allow_nan=False, separators=(",", ":"), ensure_ascii=False).encode


def _too_heavy(request: JobRequest) -> str | None:
    """Why no worker could be sent these arguments, if so. Whether they are JSON at all is told elsewhere."""
    try:
        text = _encode([request.action, request.arguments])
        # At most four bytes a character; most are never counted one by one.
        size = len(text) if len(text) * 4 <= MOST_BYTES else len(text.encode("utf-8", "replace"))
    except RecursionError:
        return f"have more than {DEEPEST} levels, or hold themselves; hand them over flatter, or as a text"
    except (TypeError, ValueError):
        return None
    if size > MOST_BYTES:
        return f"are {size:,} bytes as JSON, and a job takes {MOST_BYTES:,} at most; hand over the path of a file"
    if is_too_deep(request.arguments, text.count("[") + text.count("{")):
        return f"have more than {DEEPEST} levels; hand them over flatter, or as a text"
    return None


def is_priority(value: object) -> bool:
    """Whether a job may have this priority."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MOST_PRIORITY


def _is_key(key: str) -> bool:
    # Half a surrogate pair can be in a text of Python's, and in no file.
    return 0 < len(key) <= _LONGEST_KEY and not any("\ud800" <= one <= "\udfff" for one in key)
