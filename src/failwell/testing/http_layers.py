"""Connects the HTTP libraries to a fault injection: httpx and httpx2, requests, urllib3 (botocore) and aiohttp.

A call to a provider is sent to the lab over a real socket if it fails, so that streams, stalls and resets are real. If it
succeeds it takes its usual way, to a mocked transport if there is one; where that way would leave this machine it ends at
the name lookup, and the lab answers.
"""

import socket
from collections.abc import Callable
from contextvars import ContextVar
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from failwell.testing.fault_injection import (
    VendorCall,
    failure_address,
    is_provider,
    is_vendor_call,
    lab_url,
    success_address,
)

_Undo = Callable[[], None]
_counted = ContextVar("_counted", default=False)
"""Whether the library above has decided about this call already: requests uses urllib3."""


def connect() -> _Undo:
    """Patch every HTTP library that is installed. Returns what undoes it."""
    undos = [_guard_names()]
    for name, patch in (
        ("httpx", _patch_httpx),
        ("httpx2", _patch_httpx),
        ("requests", _patch_requests),
        ("urllib3", _patch_urllib3),
        ("aiohttp", _patch_aiohttp),
    ):
        if find_spec(name) is not None:
            undos += patch(import_module(name))

    def disconnect() -> None:
        for undo in reversed(undos):
            undo()

    return disconnect


def _replace(owner: Any, name: str, make: Callable[[Any], Any]) -> _Undo:
    original = getattr(owner, name)
    setattr(owner, name, make(original))
    return lambda: setattr(owner, name, original)


def _guard_names() -> _Undo:
    """Refuse to look up the name of a provider: no call leaves, whichever library makes it."""

    def guard(original: Any) -> Any:
        def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
            name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
            if isinstance(name, str) and is_provider(name):
                raise VendorCall(f"a test under failwell's faults does not call {name}")
            return original(host, *args, **kwargs)

        return getaddrinfo

    return _replace(socket, "getaddrinfo", guard)


# ---------------------------------------------------------------- httpx, httpx2


def _patch_httpx(httpx: Any) -> list[_Undo]:
    def before(kind: type[Any]) -> Callable[[Any], Any]:
        def make(original: Any) -> Any:
            def transport_for_url(self: Any, url: Any) -> Any:
                inner = original(self, url)
                return kind(inner) if is_provider(url.host) else inner

            return transport_for_url

        return make

    # A connection is closed with its response, so that none is left open at the end of a test.
    options: dict[str, Any] = {"verify": False, "limits": httpx.Limits(max_keepalive_connections=0)}
    return [
        _replace(httpx.Client, "_transport_for_url", before(_sync_transport(httpx, options))),
        _replace(httpx.AsyncClient, "_transport_for_url", before(_async_transport(httpx, options))),
    ]


def _sync_transport(httpx: Any, options: dict[str, Any]) -> type[Any]:
    # As it is now: a test may replace it by its own mock, and the lab is called all the same.
    send = httpx.HTTPTransport.handle_request

    class Transport(httpx.BaseTransport):
        """Stands before the transport of a client for one call to a provider."""

        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def handle_request(self, request: Any) -> Any:
            address = _failure(request, request.read())
            if address is None and not _is_proxied(self.inner):
                try:
                    return self.inner.handle_request(request)
                except httpx.TransportError as error:
                    if not is_vendor_call(error):
                        raise
            lab_request = _rewritten(httpx, request, address)
            return send(httpx.HTTPTransport(**options), lab_request)

    return Transport


def _async_transport(httpx: Any, options: dict[str, Any]) -> type[Any]:
    send = httpx.AsyncHTTPTransport.handle_async_request

    class AsyncTransport(httpx.AsyncBaseTransport):
        """Stands before the transport of an asynchronous client for one call to a provider."""

        def __init__(self, inner: Any) -> None:
            self.inner = inner

        async def handle_async_request(self, request: Any) -> Any:
            address = _failure(request, await request.aread())
            if address is None and not _is_proxied(self.inner):
                try:
                    return await self.inner.handle_async_request(request)
                except httpx.TransportError as error:
                    if not is_vendor_call(error):
                        raise
            lab_request = _rewritten(httpx, request, address)
            # A transport for each call, because connections belong to the event loop that opened them.
            return await send(httpx.AsyncHTTPTransport(**options), lab_request)

    return AsyncTransport


def _failure(request: Any, body: bytes) -> str | None:
    path = request.url.raw_path.decode("ascii")
    return failure_address(request.url.host, path, body, request.method)


def _rewritten(httpx: Any, request: Any, address: str | None) -> Any:
    path = request.url.raw_path.decode("ascii")
    url = httpx.URL(lab_url(address or success_address(request.url.host, path), path))
    headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"host"]
    headers.insert(0, (b"Host", url.netloc))
    extensions = {name: value for name, value in request.extensions.items() if name == "timeout"}
    return httpx.Request(request.method, url, headers=headers, stream=request.stream, extensions=extensions)


def _is_proxied(transport: Any) -> bool:
    """Whether a transport sends its calls through a proxy, where no name is looked up."""
    return "Proxy" in type(getattr(transport, "_pool", None)).__name__


# ---------------------------------------------------------------- requests


def _patch_requests(requests: Any) -> list[_Undo]:
    adapter_send = requests.adapters.HTTPAdapter.send

    def make(original: Any) -> Any:
        def send(self: Any, request: Any, **kwargs: Any) -> Any:
            host = urlsplit(str(request.url)).hostname or ""
            if not is_provider(host):
                return original(self, request, **kwargs)
            body = _as_bytes(request.body)
            path = request.path_url
            address = failure_address(host, path, body, request.method)
            proxies = kwargs.get("proxies") or self.proxies
            if address is None and not requests.utils.select_proxy(request.url, proxies):
                token = _counted.set(True)
                try:
                    return original(self, request, **kwargs)
                except requests.RequestException as error:
                    if not is_vendor_call(error):
                        raise
                finally:
                    _counted.reset(token)
            return lab_send(request, address or success_address(host, path), kwargs)

        return send

    def lab_send(request: Any, address: str, options: dict[str, Any]) -> Any:
        prepared = request.copy()
        prepared.url = lab_url(address, request.path_url)
        allowed = {name: options[name] for name in ("stream", "timeout") if name in options}
        response = adapter_send(requests.adapters.HTTPAdapter(), prepared, **allowed)
        response.request, response.url = request, request.url
        if not options.get("stream"):
            _ = response.content
        return response

    return [_replace(requests.Session, "send", make)]


# ---------------------------------------------------------------- urllib3, which botocore uses


def _patch_urllib3(urllib3: Any) -> list[_Undo]:
    pool_class = urllib3.connectionpool.HTTPConnectionPool

    def make(original: Any) -> Any:
        def urlopen(
            self: Any, method: str, url: str, body: Any = None, headers: Any = None, **kwargs: Any
        ) -> Any:
            if _counted.get() or not is_provider(self.host):
                return original(self, method, url, body, headers, **kwargs)
            content = _as_bytes(body)
            path = urlsplit(url)._replace(scheme="", netloc="").geturl()
            address = failure_address(self.host, path, content, method)
            if address is None and self.proxy is None:
                try:
                    return original(self, method, url, body, headers, **kwargs)
                except (urllib3.exceptions.HTTPError, OSError) as error:
                    if not is_vendor_call(error):
                        raise
            where = urlsplit(address or success_address(self.host, path))
            kwargs.pop("assert_same_host", None)
            sent = {name: value for name, value in dict(headers or {}).items() if name.lower() != "host"}
            pool = pool_class(where.hostname, where.port, timeout=self.timeout)
            return original(
                pool,
                method,
                lab_url(where.path, path),
                content or None,
                sent,
                assert_same_host=False,
                **kwargs,
            )

        return urlopen

    return [_replace(pool_class, "urlopen", make)]


# ---------------------------------------------------------------- aiohttp


def _patch_aiohttp(aiohttp: Any) -> list[_Undo]:
    def make(original: Any) -> Any:
        async def request(self: Any, method: str, str_or_url: Any, **kwargs: Any) -> Any:
            url = self._build_url(str_or_url)
            if not is_provider(url.host or ""):
                return await original(self, method, str_or_url, **kwargs)
            body = _aiohttp_body(self, kwargs)
            address = failure_address(url.host, url.raw_path_qs, body, method)
            is_proxied = kwargs.get("proxy") is not None or self.trust_env
            if address is None and not is_proxied:
                try:
                    return await original(self, method, str_or_url, **kwargs)
                except aiohttp.ClientError as error:
                    if not is_vendor_call(error):
                        raise
            kwargs.pop("proxy", None)
            kwargs.pop("ssl", None)
            params = kwargs.pop("params", None)
            target = url if params is None else url.update_query(params)
            where = lab_url(address or success_address(url.host, url.raw_path_qs), target.raw_path_qs)
            return await original(self, method, type(url)(where, encoded=True), **kwargs)

        return request

    return [_replace(aiohttp.ClientSession, "_request", make)]


def _aiohttp_body(session: Any, options: dict[str, Any]) -> bytes:
    if options.get("json") is not None:
        return _as_bytes(session.json_serialize(options["json"]))
    return _as_bytes(options.get("data"))


def _as_bytes(body: Any) -> bytes:
    if isinstance(body, str):
        return body.encode()
    return bytes(body) if isinstance(body, (bytes, bytearray)) else b""
