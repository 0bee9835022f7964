"""Keys of providers: from the file, the environment, the system's keyring or a command. They are read and never stored."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, cast

from failwell.calls.suppress import catch
from failwell.errors.axes import ActionKind
from failwell.errors.facts import UserAction
from failwell.errors.faults import Validation
from failwell.errors.masking.known_values import SHORTEST
from failwell.errors.masking.secret_names import secrets_in
from failwell.errors.missing_extra import MissingExtra, need
from failwell.errors.redact import register_secret

_SECONDS = 30.0
_LONGEST = 64 * 1024
_HARMLESS = frozenset(
    {"accept", "accept-encoding", "accept-language", "cache-control", "content-type", "host", "user-agent"}
)
"""Headers that hold no credential."""


async def read_credential(source: object, what: str) -> str | None:
    """The credential that a file names, masked from now on wherever it turns up; `None` if it names none.

    Args:
        source: A text, or one of `{env: NAME}`, `{keyring: SERVICE, user: NAME}`, `{command: [PROGRAM, ...]}`.
        what: What it is for, in messages.

    Raises:
        Validation: it is not there. The message names the place and no value.
    """
    if not isinstance(source, Mapping):
        value = str(source) if source else ""
    else:
        place = cast("Mapping[str, Any]", source)
        if "env" in place:
            value = _from_environment(place["env"], what)
        elif "keyring" in place:
            value = await _from_keyring(place["keyring"], place.get("user") or "failwell", what)
        else:
            value = await _from_command(place["command"], what)
    mask_secret(value)
    return value or None


def mask_secret(value: str) -> None:
    """Mask a value from now on, and of `Bearer KEY` the key too."""
    _, _, token = value.strip().partition(" ")
    for secret in (value, token.strip()):
        # What is shorter could not be distinguished from an ordinary word.
        if len(secret) >= SHORTEST:
            register_secret(secret)


def mask_headers(headers: Mapping[str, str]) -> None:
    """Mask the values of a file's headers from now on: the other side may send them back."""
    for name, value in headers.items():
        if name.lower() not in _HARMLESS:
            mask_secret(value)


def mask_variables(variables: Mapping[str, str]) -> None:
    """Mask the secrets among the variables that a program is given."""
    for name, value in variables.items():
        for secret in secrets_in(name, value):
            mask_secret(secret)


def refusal(message: str, advice: str) -> Validation:
    """The error of settings that cannot be used, with what to do about it."""
    return Validation(
        kind="validation.config_invalid",
        message=f"{message}; {advice}",
        user_action=UserAction(ActionKind.FIX_CONFIGURATION, advice),
        caller_facing=True,
    )


def _from_environment(name: str, what: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise refusal(f"{what} is in the variable `{name}`, which is not set", f"export {name}")
    return value


async def _from_keyring(service: str, user: str, what: str) -> str:
    from failwell.agents.tools.tool_thread import run_in_thread

    try:
        keyring: Any = need("keyring")
    except MissingExtra as error:
        raise refusal(
            f"{what} is in the keyring, and the package `keyring` is not installed", "pip install keyring"
        ) from error
    # A keyring may ask a person to unlock it; the run stays free to be stopped.
    value, error = await run_in_thread(lambda: catch(keyring.get_password, service, user))
    if error is not None:
        raise refusal(f"{what} cannot be read from the keyring", "unlock it, or set up a backend") from error
    if not value:
        raise refusal(
            f"{what} is not in the keyring under `{service}` and `{user}`",
            f"run `keyring set {service} {user}`",
        )
    return str(value)


async def _from_command(command: Sequence[str], what: str) -> str:
    """What the command prints, without the end of the line. What it prints as an error is not read."""
    import asyncio
    from asyncio.subprocess import DEVNULL, PIPE

    program = command[0]
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, start_new_session=True
        )
    except (OSError, ValueError) as error:
        raise refusal(f"{what} comes from `{program}`, which cannot be started", "install it") from error
    assert process.stdout is not None
    printed = b""
    try:
        async with asyncio.timeout(_SECONDS):
            while chunk := await process.stdout.read(_LONGEST):
                printed += chunk
                if len(printed) > _LONGEST:
                    raise refusal(f"`{program}` prints more than a credential", "let it print nothing else")
            code = await process.wait()
    except TimeoutError as error:
        advice = "run it yourself and see what it waits for"
        raise refusal(
            f"{what} comes from `{program}`, which did not end in {_SECONDS:g} s", advice
        ) from error
    finally:
        _end(process.pid)
        await process.wait()
    if code != 0:
        raise refusal(
            f"{what} comes from `{program}`, which failed with exit code {code}", "run it yourself to see why"
        )
    value = printed.decode("utf-8", "replace").strip()
    if not value:
        raise refusal(f"{what} comes from `{program}`, which printed nothing", "run it yourself to see why")
    return value


def _end(group: int) -> None:
    """End the command and what it started. It has a process group of its own."""
    from signal import SIGKILL

    try:
        os.killpg(group, SIGKILL)
    except ProcessLookupError:
        return
