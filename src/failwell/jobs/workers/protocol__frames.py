"""The protocol between host and worker: frames of four bytes of length and one JSON object.

`failwell.processes.wire` implements the worker's side. It cannot import this module, because it runs where
failwell may not be installed; a test compares the two.

    host → worker
        load        module, object, path, lanes, pulse     import the capability
        call        job, action, arguments, stream, window, phase
        wake                                                a call follows at once: wait for it without sleeping
        cancel      job                                     ask one call to stop
        more        job, count                              room for further items of a stream
        stop                                                finish, clean up and exit

    worker → host
        hello       pid, python, protocol                   the interpreter runs
        loaded      name, version, schema, actions, ...     the capability is imported
        result      job, value | error, stage               a call ended; `stage` says how far a failed one came
        item        job, value                              one item of a stream
        progress    job, fraction, message
        usage       job, amounts
        log         job, stream, level, logger, text
        unfinished  job, stream, text                       a line so far; it counts if the worker dies before its `log`
        piped                                               text past Python's streams waits in the pipes; a result follows
        pulse       at, signs, memory, calls                pushed, several times a second
        bye         reason                                  a clean end follows

What host and guardian say to each other is in `failwell.processes.guardian`.
"""

from typing import Any

from failwell.errors.faults__capability import CapabilityFatalError, CapabilityInputError
from failwell.processes.wire import TooLarge, encoded, framed, quoted


def encode(frame: dict[str, Any]) -> bytes:
    """One frame of a worker's call as bytes.

    Raises:
        CapabilityInputError: a value cannot be written as JSON, or it is too large.
    """
    try:
        return encoded(frame)
    except TooLarge as error:
        raise _too_large(error) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise CapabilityInputError(
            f"an argument cannot be sent to the worker: {error}; give JSON values only"
        ) from error


def encode_call(job: str, action: str, arguments: str) -> bytes:
    """The frame of one call, as `encode` writes it, of arguments that are JSON already.

    Raises:
        CapabilityInputError: it is too large.
    """
    try:
        return framed(
            f'{{"type":"call","job":{quoted(job)},"action":{quoted(action)},"arguments":{arguments}}}'
        )
    except TooLarge as error:
        raise _too_large(error) from error


def _too_large(error: TooLarge) -> CapabilityInputError:
    return CapabilityInputError(f"the arguments are {error}; pass the path of a file")


class ProtocolMismatch(CapabilityFatalError, kind="validation.contract_version_mismatch"):
    """The worker uses another version of the protocol."""
