"""instructor inside a tool of a workflow, through the command: failures are what they carry, and nothing of the conversation is shown."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Done, failwell, failwell_process
from tests.sdks.instructor_replies import (
    ANSWER,
    CUT,
    LIMITED,
    NO_CALL,
    PROMPT,
    REFUSAL,
    REFUSED,
    UNFIT,
    Script,
)

pytest.importorskip("instructor", reason="`make test-sdks` runs it with instructor")
pytestmark = pytest.mark.filterwarnings("ignore")

FLOW = """\
workflow: {name: w, entry_point: ask, input: {url: {type: string}}}
tools: {extract: {python: "extracting:TOOL", effect: read}}
agents:
  - {name: ask, type: tool, tool: extract, arguments: {url: "{{ workflow.input.url }}"}}
"""
TOOLS = f"""\
import instructor, openai, pydantic
from instructor.v2.core.errors import InstructorRetryException

User = pydantic.create_model("User", name=(str, ...), age=(int, ...))


def extract(url: str) -> str:
    with openai.OpenAI(api_key="sk-lab", base_url=url, max_retries=0) as client:
        user = instructor.from_openai(client).chat.completions.create(
            model="lab-model", messages=[{{"role": "user", "content": "{PROMPT}"}}], response_model=User, max_retries=2
        )
    return user.name


def give_up(url: str) -> str:
    asked = [{{"content": "{PROMPT}"}}]
    raise InstructorRetryException("{PROMPT}", n_attempts=1, total_usage=0, messages=asked, create_kwargs={{"prompt": "{PROMPT}"}})
"""


class Place:
    """A folder with a workflow whose tool asks a model for a user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "extracting.py").write_text(TOOLS)

    def run(
        self, *replies: tuple[int, dict[str, Any]], command: Any = failwell, tool: str = "extract"
    ) -> tuple[Done, int]:
        """Run it while the server follows a script: how the command ended, and how often the server was called."""
        (self.folder / "w.yaml").write_text(FLOW.replace("TOOL", tool))
        with Script(*replies) as script:
            done = command(
                "run", "w.yaml", "--error-format", "json", "--quiet", "--run-id", "r", "--store", "state",
                "-i", f"url={script.url}", cwd=self.folder,
            )  # fmt: skip
            return done, script.calls

    @property
    def report(self) -> dict[str, Any]:
        """The failure as it was recorded."""
        line = (self.folder / "state/runs/r/errors.jsonl").read_text()
        recorded: dict[str, Any] = json.loads(line)["report"]
        return recorded

    def everything(self, done: Done) -> str:
        """All that the command printed, stored and shows later."""
        stored = b"".join(file.read_bytes() for file in (self.folder / "state").rglob("*") if file.is_file())
        later = [
            failwell(*words, "--store", "state", cwd=self.folder).out
            for words in (
                ("runs", "show", "r"),
                ("runs", "logs", "r"),
                ("runs", "export", "r"),
                ("audit", "export"),
            )
        ]
        return "".join([done.out, done.err, stored.decode("utf-8", "replace"), *later])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.acceptance("pipelex 39")
def test_a_rate_limit_is_one_call_and_is_chained_from_the_error_of_instructor(place: Place) -> None:
    done, calls = place.run(LIMITED)

    assert (done.code, calls) == (3, 1)
    assert (done.error["kind"], done.error["error_category"], done.error["retryable"]) == (
        "provider.rate_limited",
        "transient",
        True,
    )
    assert done.error["error_source"] == [
        "InstructorRetryException @ provider.rate_limited",
        "RateLimitError @ provider.rate_limited",
    ]
    assert done.error["not_before"]["after"] == 7.0
    assert (place.report["error_type"], place.report["provider_metadata"]["status_code"]) == (
        "InstructorRetryException",
        429,
    )


# The logs are those of the process: in this one pytest takes what libraries log.


@pytest.mark.acceptance("pipelex 40")
def test_an_answer_that_never_fits_is_content_and_its_text_is_in_no_report_and_no_log(place: Place) -> None:
    done, calls = place.run(UNFIT, command=failwell_process)

    assert (done.code, calls) == (3, 3)
    assert (done.error["kind"], done.error["error_category"]) == ("provider.output_invalid", "content")
    assert (done.error["details"]["attempts"], place.report["fields_invalid"]) == (3, ["age"])
    for text in (ANSWER, PROMPT):
        assert text not in place.everything(done)


@pytest.mark.acceptance("pipelex 41")
def test_a_rate_limit_after_a_bad_answer_is_a_rate_limit(place: Place) -> None:
    done, calls = place.run(UNFIT, LIMITED)

    assert (done.code, calls) == (3, 2)
    assert (done.error["kind"], done.error["error_category"]) == ("provider.rate_limited", "transient")


@pytest.mark.acceptance("pipelex 42")
def test_an_answer_that_was_cut_names_its_model_its_stop_reason_and_its_tokens(place: Place) -> None:
    done, _ = place.run(CUT)

    assert (done.code, done.error["kind"]) == (3, "provider.output_truncated")
    for words in ("`lab-model`", "`length`", "16 tokens"):
        assert words in done.error["message"]
    assert done.error["model"] == "lab-model"
    assert done.error["details"] == {"stop_reason": "length", "input_tokens": 11, "output_tokens": 16}
    assert ANSWER not in place.everything(done)


@pytest.mark.acceptance("pipelex 43")
@pytest.mark.parametrize(
    ("reply", "kind"), [(NO_CALL, "provider.output_invalid"), (REFUSED, "provider.content_refused")]
)
def test_an_answer_without_the_tool_call_and_a_refusal_are_content_and_their_words_stay_inside(
    place: Place, reply: tuple[int, dict[str, Any]], kind: str
) -> None:
    done, _ = place.run(reply, command=failwell_process)

    assert (done.code, done.error["kind"], done.error["error_category"]) == (3, kind, "content")
    for text in (ANSWER, REFUSAL, PROMPT):
        assert text not in place.everything(done)


@pytest.mark.acceptance("pipelex 44")
def test_a_wrapper_around_nothing_is_unknown_and_names_only_its_class(place: Place) -> None:
    done, _ = place.run(LIMITED, tool="give_up")

    report = place.report
    assert (done.code, done.error["kind"], done.error["error_category"]) == (3, "provider.unknown", "unknown")
    assert (report["retryable"], report["user_action"]["kind"]) == (False, "contact_support")
    assert report["evidence"][0]["saw"] == "InstructorRetryException"
    assert PROMPT not in place.everything(done)
