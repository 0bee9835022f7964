"""HTTPS requests to an exact list of hosts. Redirects are not followed, and no private address is reached.

The address is resolved here, checked, and connected to as it was checked, so a name cannot change in between.
"""

import http.client
import ipaddress
import socket
import ssl
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any
from urllib.parse import SplitResult, urlsplit

from failwell.agents.credentials import mask_headers
from failwell.agents.tools.tool import Tool, ToolContext
from failwell.agents.tools.tool_thread import run_in_thread
from failwell.calls.suppress import catch
from failwell.errors.faults import ToolTerminal

SECONDS = 30.0
_MOST_BYTES = 1024 * 1024
_HEADERS = frozenset({"accept", "content-type"})
"""Headers that a model may set. Those that carry credentials are the file's."""
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def http_request(
    allow: Sequence[str],
    headers: Mapping[str, str] | None = None,
    *,
    private: bool = False,
    trust: ssl.SSLContext | None = None,
) -> Tool:
    """A tool that makes requests to the hosts in `allow`.

    Args:
        allow: `host` or `host:port`, each exact; without a port it is 443. None allows nothing.
        headers: Headers of every request, such as a credential. The model neither sees nor changes them.
        private: Whether hosts with private addresses may be reached.
        trust: The certificates to trust; those of the system by default.
    """
    hosts = frozenset(_host_and_port(urlsplit(f"//{entry}")) for entry in allow)
    mask_headers(headers or {})

    async def run(arguments: Mapping[str, Any], _context: ToolContext) -> dict[str, Any]:
        sockets: list[socket.socket] = []
        try:
            return await run_in_thread(
                lambda: _request(arguments, dict(headers or {}), private, trust, sockets)
            )
        finally:
            # A host that sends a byte now and then would hold the thread for ever.
            for open_socket in sockets:
                catch(open_socket.shutdown, socket.SHUT_RDWR)

    def check(arguments: Mapping[str, Any], _context: ToolContext) -> str | None:
        try:
            url = urlsplit(str(arguments["url"]))
            target = _host_and_port(url)
        except ValueError:
            return "insecure_url"
        if url.scheme != "https" or url.username is not None or url.password is not None or not target[0]:
            return "insecure_url"
        if any(ord(letter) < 33 or ord(letter) == 127 for letter in str(arguments["url"])):
            return "insecure_url"
        if target in hosts:
            return None
        return "port_not_allowed" if target[0] in {host for host, _ in hosts} else "domain_not_allowed"

    return Tool(
        name="http_request",
        description="Make an HTTPS request to " + (", ".join(sorted(allow)) or "no host") + ".",
        parameters={
            "type": "object",
            "properties": {
                "url": {"type": "string"},
                "method": {"enum": list(_METHODS)},
                "body": {"type": "string"},
                "headers": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            "required": ["url"],
            "additionalProperties": False,
        },
        run=run,
        approval="ask",
        check=check,
        timeout=2 * SECONDS,
    )


def _host_and_port(url: SplitResult) -> tuple[str, int]:
    """The host of an address as it is compared, and its port."""
    return (url.hostname or "").lower().rstrip("."), 443 if url.port is None else url.port


def is_public(address: str) -> bool:
    """Whether an address is one of the open internet, also behind the notations that embed IPv4 in IPv6."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in _NAT64:
            inner = ipaddress.ip_address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
        if ip.is_site_local:
            # Python counts these private addresses of earlier days as global.
            return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


def _request(
    arguments: Mapping[str, Any],
    headers: dict[str, str],
    private: bool,
    trust: ssl.SSLContext | None,
    sockets: list[socket.socket],
) -> dict[str, Any]:
    url = urlsplit(str(arguments["url"]))
    host, port = _host_and_port(url)
    context = trust or ssl.create_default_context()
    plain = socket.create_connection((_address(host, port, private), port), timeout=SECONDS)
    sockets.append(plain)
    with ExitStack() as unsecured:
        # Whatever ends the handshake, an interrupt too, leaves no open socket.
        unsecured.callback(plain.close)
        secured = context.wrap_socket(plain, server_hostname=host)
        unsecured.pop_all()
    sockets.append(secured)
    connection = http.client.HTTPSConnection(host, port, timeout=SECONDS)
    connection.sock = secured
    own = {name.lower() for name in headers}
    sent = {
        name: value
        for name, value in arguments.get("headers", {}).items()
        if name.lower() in _HEADERS and name.lower() not in own
    }
    body = arguments.get("body")
    try:
        connection.request(
            arguments.get("method", "GET"),
            _target(url),
            body=None if body is None else body.encode("utf-8", "replace"),
            headers={**sent, **headers},
        )
        reply = connection.getresponse()
        content = reply.read(_MOST_BYTES + 1)
    finally:
        connection.close()
    if len(content) > _MOST_BYTES:
        raise ToolTerminal(
            kind="tool.failed", message="the reply is too large", details={"reason": "too_large"}
        )
    return {
        "status": reply.status,
        "content_type": reply.getheader("content-type", ""),
        "body": content.decode("utf-8", "replace"),
    }


def _target(url: SplitResult) -> str:
    return (url.path or "/") + (f"?{url.query}" if url.query else "")


def _address(host: str, port: int, private: bool) -> str:
    """The address to connect to. One private address among those of a name refuses all of them, unless they are allowed."""
    found = {str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    if not found or not (private or all(is_public(address) for address in found)):
        raise ToolTerminal(
            kind="tool.denied",
            message="the host has an address that may not be reached",
            details={"reason": "blocked_host"},
            caller_facing=True,
        )
    return min(found, key=lambda address: (":" in address, address))
