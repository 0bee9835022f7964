"""One Django site for all tests: Django can be configured once in a process."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# Django has no type hints.

from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.test import RequestFactory
from django.urls import path

from failwell.integrations.django import handler400, handler403, handler404, handler500

__all__ = [
    "a_request",
    "configure_django",
    "handler400",
    "handler403",
    "handler404",
    "handler500",
    "urlpatterns",
]

VIEWS: dict[str, Any] = {}
"""What a test puts here is called for `/views/<name>`."""


def configure_django() -> None:
    """Configure Django for this module's addresses, once."""
    if settings.configured:
        return
    settings.configure(
        SECRET_KEY="for tests",
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF=__name__,
        MIDDLEWARE=["failwell.integrations.django.FailwellMiddleware", "tests.django_site.Broken"],
        LOGGING_CONFIG=None,
    )
    import django

    django.setup()


def a_request(path: str) -> Any:
    """A request to `path` that no server made."""
    return RequestFactory().post(path)


class Broken:
    """A middleware inside that fails for one address."""

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: Any) -> Any:
        if request.path == "/broken-middleware":
            raise KeyError(VIEWS["words"])
        return self.get_response(request)


def view(request: Any, name: str) -> Any:
    result = VIEWS[name](request)
    return HttpResponse(result.encode()) if isinstance(result, str) else result


urlpatterns = [path("views/<name>", view)]
