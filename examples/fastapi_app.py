"""A web service whose every failure is a problem document: one call installs it.

    uvicorn examples.fastapi_app:app
    curl -i localhost:8000/failures/rate_limit
    curl -i localhost:8000/orders -d '{"count": "many"}' -H 'content-type: application/json'

On the other side, `client_report` turns a reply back into a report, so a caller decides on the
kind and never on the text.
"""

from collections.abc import Callable

import httpx
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from failwell import ErrorReport, Fault
from failwell.capability import ResourceShortfall
from failwell.errors import NotBefore
from failwell.http import OnReport, from_problem
from failwell.integrations.starlette import install


class Order(BaseModel):
    """What a caller may order."""

    name: str
    count: int


FAILURES: dict[str, Callable[[], Exception]] = {
    # the runtime: a repeat may help, now or later
    "rate_limit": lambda: Fault(
        kind="provider.rate_limited", provider="acme", not_before=NotBefore(after=3.2)
    ),
    "unavailable": lambda: Fault(
        kind="provider.unavailable", provider="acme", not_before=NotBefore(after=30)
    ),
    "timeout": lambda: Fault(kind="provider.timeout", provider="acme"),
    "lost_reply": lambda: Fault(kind="provider.outcome_unknown", provider="acme"),
    "quota": lambda: Fault(
        kind="provider.quota_exhausted", provider="acme", not_before=NotBefore(after=86_400)
    ),
    "memory": lambda: Fault(
        kind="resource.gpu_memory", resource_shortfall=ResourceShortfall("gpu_vram_mb", 24_000, 8_000)
    ),
    "budget": lambda: Fault(kind="limit.budget_exceeded"),
    "stopped": lambda: Fault(kind="cancel.run"),
    # the operator: somebody has to change the installation
    "credentials": lambda: Fault(kind="provider.auth", provider="acme", model="acme-large"),
    # the caller: other input, other content, another permission
    "input": lambda: Fault(
        kind="validation.input_invalid", message="the page is empty", fields_invalid=["page"]
    ),
    "content": lambda: Fault(kind="provider.content_refused", provider="acme"),
    "denied": lambda: Fault(kind="tool.denied", message="`delete_all` needs a grant"),
    # nobody planned these
    "bug": lambda: RuntimeError("connection string postgres://app:hunter22@db/main"),
    "value": lambda: ValueError("not the caller's value"),
}


def create_app(on_report: OnReport | None = None) -> FastAPI:
    """The service; reports go to the log `failwell.http` unless somebody asks for them."""
    app = FastAPI(title="failwell example")
    install(app, on_report=on_report)
    for name, fail in FAILURES.items():
        app.add_api_route(f"/failures/{name}", _route(fail), name=name)
    app.add_api_route("/orders", order, methods=["POST"])
    app.add_api_route("/orders/{number}", find_order)
    return app


async def order(order: Order) -> Order:
    return order


async def find_order(number: int) -> Order:
    raise HTTPException(404, f"there is no order {number}")


def client_report(reply: httpx.Response) -> ErrorReport | None:
    """The report behind a reply, or `None` when it did not fail."""
    if reply.is_success:
        return None
    return from_problem(reply.content, status=reply.status_code, headers=reply.headers, trusted=True)


def _route(fail: Callable[[], Exception]) -> Callable[[], object]:
    async def route() -> None:
        raise fail()

    return route


app = create_app()
