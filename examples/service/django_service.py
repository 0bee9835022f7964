"""The same service with Django, in one file.

failwell lab serve --port 8900 --stall 5 &
python examples/service/django_service.py runserver --noreload 8000
curl -i 'localhost:8000/ask?scenario=bad_key' -H 'content-type: application/json' -d '{"question": "why?"}'
curl -iN 'localhost:8000/events?scenario=broken_stream'
"""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Django has no type hints.

import json
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpResponse, JsonResponse, StreamingHttpResponse
from django.urls import path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.service import model
from failwell import Fault
from failwell.integrations.django import handler400, handler403, handler404, handler500

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]

TOPICS = {"1": "weather"}

if not settings.configured:
    settings.configure(
        SECRET_KEY="only for this example",  # noqa: S106  (nothing is signed with it)
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF=__name__,
        MIDDLEWARE=["failwell.integrations.django.FailwellMiddleware"],
        FAILWELL={"type_base": "https://errors.example.com/"},
    )


def ask(request: Any) -> JsonResponse:
    """The whole answer."""
    body: Any = json.loads(request.body) if request.content_type == "application/json" else {}
    question = body.get("question")
    if not isinstance(question, str) or not question.strip():
        raise Fault(
            kind="validation.input_invalid", message="the question is empty", fields_invalid=["question"]
        )
    return JsonResponse({"answer": model.ask(question, _scenario(request))})


def events(request: Any) -> StreamingHttpResponse:
    """The answer as server-sent events."""
    pieces = model.stream("why?", _scenario(request))
    return StreamingHttpResponse((f"data: {piece}\n\n" for piece in pieces), content_type="text/event-stream")


def text(request: Any) -> StreamingHttpResponse:
    """The answer as plain text, as it comes."""
    return StreamingHttpResponse(model.stream("why?", _scenario(request)), content_type="text/plain")


def topic(request: Any, number: str) -> HttpResponse:
    """A topic. A number that does not exist is a bug of this service."""
    del request
    return HttpResponse(TOPICS[number].encode())


def _scenario(request: Any) -> str:
    return str(request.GET.get("scenario", "ok"))


urlpatterns = [path("ask", ask), path("events", events), path("text", text), path("topics/<number>", topic)]

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
