"""An exception of a library that nobody has rules for is read by the reply that it holds."""

from typing import Any

import pytest

from failwell import describe
from tests.adapters.raisers import CANARY


class Reply:
    """What a client keeps of an answer."""

    def __init__(self, status: int, body: str = "", headers: dict[str, str] | None = None) -> None:
        self.status_code = status
        self.headers = headers or {}
        self._content = body.encode()


def an_error(
    module: str, name: str, base: type[BaseException] = Exception, **attributes: Any
) -> BaseException:
    error = type(name, (base,), {"__module__": module})(CANARY)
    vars(error).update(attributes)
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (an_error("brand_new", "NewError", response=Reply(429, headers={"retry-after": "2"})), "provider.rate_limited"),
        (an_error("brand_new", "NewError", response=Reply(401)), "provider.auth"),
        (an_error("brand_new", "NewError", ValueError, response=Reply(503)), "provider.overloaded"),
        (
            an_error("brand_new", "NewError", response=Reply(400, '{"error": {"code": "context_length_exceeded"}}')),
            "provider.context_too_long",
        ),
        (an_error("brand_new.core", "ApiError", status_code=402, headers={}, body={"detail": CANARY}), "provider.quota_exhausted"),
    ],
)  # fmt: skip
def test_a_reply_decides_whatever_library_it_came_through(error: BaseException, kind: str) -> None:
    report = describe(error)

    assert report.kind == kind
    assert report.provider_metadata is not None
    assert report.provider_metadata.sdk == "brand_new"
    assert CANARY not in report.to_json()


@pytest.mark.parametrize(
    "error",
    [
        an_error("starlette.exceptions", "HTTPException", status_code=404, headers={}),
        an_error("werkzeug.exceptions", "NotFound", response=Reply(404)),
        an_error("my_program", "OutOfStock", status_code=409),
        an_error("my_program", "OutOfStock", response="a text"),
        an_error("my_program", "OutOfStock", response=Reply(200)),
    ],
)
def test_an_answer_that_a_program_gives_is_no_reply_that_it_got(error: BaseException) -> None:
    assert not describe(error).kind.startswith("provider.")
