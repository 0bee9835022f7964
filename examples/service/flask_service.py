"""The same service with Flask.

failwell lab serve --port 8900 --stall 5 &
flask --app examples.service.flask_service run --port 8000
curl -i 'localhost:8000/ask?scenario=rate_limited' -H 'content-type: application/json' -d '{"question": "why?"}'
curl -iN 'localhost:8000/events?scenario=broken_stream'
"""

from typing import Any

from flask import Flask, Response, request

from examples.service import model
from failwell import Fault
from failwell.integrations.flask import install

app = Flask("questions")
install(app, type_base="https://errors.example.com/")

TOPICS = {"1": "weather"}


@app.post("/ask")
def ask() -> dict[str, str]:
    """The whole answer."""
    body: Any = request.get_json()
    question = body.get("question") if isinstance(body, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(question, str) or not question.strip():
        raise Fault(
            kind="validation.input_invalid", message="the question is empty", fields_invalid=["question"]
        )
    return {"answer": model.ask(question, request.args.get("scenario", "ok"))}


@app.get("/events")
def events() -> Response:
    """The answer as server-sent events."""
    pieces = model.stream("why?", request.args.get("scenario", "ok"))
    return Response((f"data: {piece}\n\n" for piece in pieces), mimetype="text/event-stream")


@app.get("/text")
def text() -> Response:
    """The answer as plain text, as it comes."""
    return Response(model.stream("why?", request.args.get("scenario", "ok")), mimetype="text/plain")


@app.get("/topics/<number>")
def topic(number: str) -> str:
    """A topic. A number that does not exist is a bug of this service."""
    return TOPICS[number]
