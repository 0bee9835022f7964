"""DSPy: a ReAct program with one step."""

import asyncio
import re
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from failwell.integrations.dspy import reliability
from failwell.testing.laboratory.lab_reply import LabCall, Reply, as_json
from tests.sdks.frameworks.replies import completion
from tests.sdks.plugins.scenarios import GaveUp, ToolBroke
from tests.sdks.plugins.scripted_lab import Step, lab_reply, rate_limited

NAME = "DSPy"
PACKAGE = "dspy"
LINE = "dspy.configure(**reliability(lm))"


def _fields(**fields: str) -> Step:
    """A reply in the format that DSPy's adapter asks for."""
    text = "".join(f"[[ ## {name} ## ]]\n{value}\n\n" for name, value in fields.items())

    def answer(_dialect: str, _call: LabCall) -> Reply:
        return as_json(*completion(content=f"{text}[[ ## completed ## ]]\n"))

    return answer


_LOOK = _fields(next_thought="look", next_tool_name="weather", next_tool_args='{"city": "Oslo"}')
_DONE = _fields(next_thought="done", next_tool_name="finish", next_tool_args="{}")
_ANSWER = _fields(reasoning="none", answer="an answer")
STEPS = {
    "ok": (_DONE, _ANSWER),
    "recovers": (lab_reply("overloaded"), _DONE, _ANSWER),
    "delay": (rate_limited(1.5), _DONE, _ANSWER),
    "tool_error": (_LOOK, _ANSWER),
}
# A step and the extraction of the answer follow.
EXPECTS = {"recovers": {"calls": 3}, "delay": {"calls": 3}}


class _Time:
    """The module, whose `sleep` is not longer than the test."""

    def sleep(self, seconds: float) -> None:
        if seconds > _LONGEST_SLEEP:
            raise GaveUp(f"about to sleep for {seconds:.0f} s")
        time.sleep(seconds)


_LONGEST_SLEEP = 30.0


def before(url: str) -> Callable[..., str]:
    return _program(url, lambda lm: {"lm": lm})


def after(url: str, **options: Any) -> Callable[..., str]:
    return _program(url, lambda lm: reliability(lm, **options))


def seen(requests: list[dict[str, Any]]) -> str:
    text: str = requests[-1]["messages"][-1]["content"]
    observation = text.partition("[[ ## observation_0 ## ]]")[2].partition("Respond with")[0].strip()
    # Without the folders of this machine.
    return re.sub(r'(?<=File ")[^"]*/(?=[^"/]+")', "", observation)


def _program(url: str, configure: Callable[[Any], Any]) -> Callable[..., str]:
    dspy: Any = import_module("dspy")
    execution: Any = import_module("dspy.clients.execution")
    execution.time = _Time()

    def weather(city: str) -> str:
        """The weather in a city."""
        raise ToolBroke

    def ask(stream: bool = False) -> str:
        lm = dspy.LM("openai/gpt-4o-mini", api_base=url, api_key="sk-lab", cache=False)
        with dspy.context(**configure(lm)):
            if stream:
                return asyncio.run(read())
            return dspy.ReAct("question -> answer", tools=[weather], max_iters=1)(question="hello").answer

    async def read() -> str:
        program = dspy.streamify(dspy.Predict("question -> answer"))
        return "".join([str(piece) async for piece in program(question="hello")])

    return ask
