"""instructor on the openai client: an answer that must fit a schema."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from failwell.integrations.instructor import reliability
from tests.sdks.plugins.scripted_lab import Step, calls_tool, lab_reply, rate_limited

NAME = "instructor"
PACKAGE = "instructor"
OLDEST = (1, 17)
LINE = "client = reliability(instructor.from_openai(OpenAI()))"
ABSENT = {
    "tool_error": "the tool that instructor has the model call is its schema, and runs nothing",
    "stalled_stream": "instructor reads a stream to its end before the first complete object; use `failwell.limit_stream`",
}
TYPES = {"long_delay": "InstructorRetryException"}
_FITS = calls_tool("Greeting", {"name": "Ada"})
STEPS: dict[str, tuple[Step, ...]] = {
    "ok": (_FITS,),
    "recovers": (lab_reply("overloaded"), _FITS),
    "delay": (rate_limited(1.5), _FITS),
}


def before(url: str) -> Callable[..., str]:
    return _caller(url, lambda client: client)


def after(url: str, **options: Any) -> Callable[..., str]:
    return _caller(url, lambda client: reliability(client, **options))


def _caller(url: str, prepare: Callable[[Any], Any]) -> Callable[..., str]:
    instructor: Any = import_module("instructor")
    sdk: Any = import_module("openai")
    pydantic: Any = import_module("pydantic")
    schema: Any = pydantic.create_model("Greeting", name=(str, ...))

    def ask(stream: bool = False) -> str:
        with sdk.OpenAI(api_key="sk-lab", base_url=url) as client:
            created = prepare(instructor.from_openai(client)).create(
                model="gpt-4o-mini",
                messages=[{"role": "user", "content": "hello"}],
                response_model=schema,
                max_retries=2,
            )
            return created.name

    return ask
