"""A FastAPI service with streaming, in front of a model that fails.

    failwell lab serve --port 8900 --stall 5 &
    uvicorn examples.service.fastapi_service:app
    curl -i 'localhost:8000/ask?scenario=empty_balance' -H 'content-type: application/json' -d '{"question": "why?"}'
    curl -iN 'localhost:8000/events?scenario=broken_stream'

One call, `install(app)`, is all that it does about failures.
"""

from collections.abc import AsyncIterator

from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from examples.service import model
from failwell import Fault
from failwell.integrations.fastapi import install

app = FastAPI(title="Questions and answers")
install(app, type_base="https://errors.example.com/")

TOPICS = {"1": "weather"}


class Question(BaseModel):
    """What a caller asks."""

    question: str = Field(min_length=1, max_length=200)


@app.post("/ask")
async def ask(question: Question, scenario: str = "ok") -> dict[str, str]:
    """The whole answer."""
    if question.question.isspace():
        raise Fault(
            kind="validation.input_invalid", message="the question is empty", fields_invalid=["question"]
        )
    return {"answer": await model.aask(question.question, scenario)}


@app.get("/events")
async def events(scenario: str = "ok") -> StreamingResponse:
    """The answer as server-sent events."""

    async def pieces() -> AsyncIterator[str]:
        async for piece in model.astream("why?", scenario):
            yield f"data: {piece}\n\n"

    return StreamingResponse(pieces(), media_type="text/event-stream")


@app.get("/text")
async def text(scenario: str = "ok") -> StreamingResponse:
    """The answer as plain text, as it comes."""
    return StreamingResponse(model.astream("why?", scenario), media_type="text/plain")


@app.get("/topics/{number}")
async def topic(number: str) -> str:
    """A topic. A number that does not exist is a bug of this service."""
    return TOPICS[number]
