"""Asks a person what to do after a failure: call the tool again, with other arguments, or sign in again.

Without a person nothing is asked, and the failure stays what it is.
"""

from collections.abc import Callable, Mapping
from json import dumps, loads
from typing import TYPE_CHECKING, Any, cast

from failwell.agents.credentials import mask_secret
from failwell.agents.people.queue import InteractionQueue, InteractionRequired
from failwell.agents.people.requests import Answer, Approve, Ask, DeviceCode, Password, Request
from failwell.calls.clock import SYSTEM_CLOCK, Clock
from failwell.errors.faults import ProviderCapability
from failwell.errors.redact import redact_value
from failwell.errors.report import ErrorReport
from failwell.errors.views import user_message

if TYPE_CHECKING:
    from failwell.agents.models import Models
    from failwell.agents.tools.tool import Tool

MOST_CORRECTIONS = 3
"""How often a person is asked for arguments that fit."""
_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_LONGEST_REPLY = 64 * 1024


class Recovery:
    """The questions of one agent after failures.

    Args:
        queue: Where people are asked.
        scope: What the questions belong to.
        clock: Waits between two requests for a token.
    """

    def __init__(
        self, queue: Callable[[], InteractionQueue], scope: Mapping[str, Any], *, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._queue = queue
        self._scope = scope
        self._clock = clock

    async def arguments_for(
        self,
        tool: "Tool",
        report: ErrorReport,
        arguments: Mapping[str, Any],
        problem_with: Callable[[object], str | None],
    ) -> Mapping[str, Any] | None:
        """The arguments of one more call; `None` if there is to be none.

        Args:
            tool: The tool that failed.
            report: How it failed.
            arguments: The complete arguments of the call.
            problem_with: Why other arguments do not fit, or `None`.
        """
        failure = f"`{tool.name}` failed with {report.kind}: {user_message(report)}"
        if tool.recovery == "retry":
            shown = dumps(redact_value(dict(arguments)), ensure_ascii=True, indent=2, default=str)
            text = f"{failure}\nCall it again with the same arguments?\n{shown}"
            reply = await self._ask(Approve(text=text, scope={**self._scope, "tool": tool.name}))
            return arguments if reply is not None and reply.value is True else None
        problem = ""
        for _ in range(MOST_CORRECTIONS):
            text = f"{failure}\n{problem}Other arguments, as one JSON object? An empty line gives up."
            reply = await self._ask(Ask(text=text, scope={**self._scope, "tool": tool.name}))
            if reply is None or not reply.value.strip():
                return None
            value = _object(reply.value)
            reason = "that is not a JSON object" if value is None else problem_with(value)
            if reason is None:
                return value
            problem = f"Not so: {reason}.\n"
        return None

    async def sign_in(self, models: "Models", provider: str, settings: Mapping[str, Any]) -> bool:
        """Ask for another key, or to sign in with a device code. Returns whether the models of `provider` have a new key."""
        device: Mapping[str, str] | None = settings.get("sign_in")
        scope = {**self._scope, "provider": provider}
        if device is None:
            text = f"`{provider}` refused the key. Another key?"
            reply = await self._ask(Password(text=text, scope=scope))
            key = None if reply is None else str(reply.value)
        else:
            key = await self._device_token(device, provider, scope)
        if key is None:
            return False
        mask_secret(key)
        await models.renew(provider, key)
        return True

    async def _device_token(
        self, device: Mapping[str, str], provider: str, scope: Mapping[str, Any]
    ) -> str | None:
        """A token by the device flow of OAuth (RFC 8628); `None` if the person does not sign in."""
        client = {"client_id": device["client_id"]}
        if "scope" in device:
            client["scope"] = device["scope"]
        code = await _post(device["device_url"], client)
        mask_secret(str(code["device_code"]))
        expires = self._clock.now().timestamp() + float(code.get("expires_in", 600))
        reply = await self._ask(
            DeviceCode(
                text=f"`{provider}` needs you to sign in again",
                url=str(code.get("verification_uri_complete") or code["verification_uri"]),
                code=str(code["user_code"]),
                expires_at=expires,
                scope=scope,
            )
        )
        if reply is None or reply.value is not True:
            return None
        request = {
            "client_id": device["client_id"],
            "device_code": str(code["device_code"]),
            "grant_type": _GRANT,
        }
        while self._clock.now().timestamp() < expires:
            token = await _post(device["token_url"], request)
            if "access_token" in token:
                return str(token["access_token"])
            if token.get("error") not in ("authorization_pending", "slow_down"):
                return None
            await self._clock.asleep(float(code.get("interval", 5)))
        return None

    async def _ask(self, request: Request) -> Answer | None:
        queue = self._queue()
        if not queue.has_answerers:
            return None
        try:
            reply = await queue.ask(request)
        except InteractionRequired:
            return None
        return reply if isinstance(reply, Answer) else None


def _object(text: str) -> dict[str, Any] | None:
    try:
        value: object = loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


async def _post(url: str, form: Mapping[str, str]) -> dict[str, Any]:
    """The JSON object that an authorization server replies, also with an error status."""
    from urllib.parse import urlencode
    from urllib.request import Request as HttpRequest

    from failwell.agents.tools.tool_thread import run_in_thread

    request = HttpRequest(  # noqa: S310  (the scheme is checked when the file is read)
        url, data=urlencode(form).encode(), headers={"Accept": "application/json"}, method="POST"
    )
    body = await run_in_thread(lambda: _read(request))
    value = _object(body)
    if value is None:
        raise ProviderCapability(kind="provider.auth", message="the sign-in server did not reply with JSON")
    return value


def _read(request: Any) -> str:
    from urllib.error import HTTPError
    from urllib.request import urlopen

    try:
        with urlopen(request, timeout=30.0) as reply:  # noqa: S310  (see above)
            return reply.read(_LONGEST_REPLY).decode("utf-8", "replace")
    except HTTPError as error:
        # A code that nobody entered yet is an error status with a JSON body.
        with error:
            return error.read(_LONGEST_REPLY).decode("utf-8", "replace")
