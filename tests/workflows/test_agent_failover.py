"""Fail-over between real clients against the lab: after an overload, and never after the first piece has been shown."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from failwell.testing import Lab, lab
from failwell.testing.laboratory.lab_reply import LabCall, Reply
from tests.cli.running import Done, failwell
from tests.installed import need
from tests.sdks.plugins.scripted_lab import lab_reply, scripted_lab

need("pydantic_ai", "openai", "anthropic")

AGENT = """\
workflow:
  name: w
  entry_point: ask
  runtime: {default_model: "openai-chat:gpt-lab"}
  cost:
    pricing:
      gpt-lab: {input_per_mtok: 1, output_per_mtok: 2}
      claude-lab: {input_per_mtok: 3, output_per_mtok: 4}
agents:
  - {name: ask, prompt: hello, max_attempts: 1, fallback: [{model: "anthropic:claude-lab", max_attempts: 1}]}
"""


class Place:
    """A folder with an agent whose first model is OpenAI's and whose second is Anthropic's."""

    def __init__(self, folder: Path, fake: Lab) -> None:
        self.folder = folder
        self.lab = fake
        (folder / "w.yaml").write_text(AGENT)

    def call(self, *arguments: str, openai: str, anthropic: str = "ok") -> Done:
        return failwell(
            *arguments, "--error-format", "json", "--store", str(self.folder / "state"),
            cwd=self.folder,
            env={
                "OPENAI_API_KEY": "lab-credential", "OPENAI_BASE_URL": f"{self.lab.url('openai', openai)}/v1",
                "ANTHROPIC_API_KEY": "lab-credential", "ANTHROPIC_BASE_URL": self.lab.url("anthropic", anthropic),
            },
        )  # fmt: skip

    @property
    def calls(self) -> tuple[int, int]:
        return self.lab.calls("openai"), self.lab.calls("anthropic")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with lab() as fake:
        yield Place(tmp_path, fake)


def report_of(place: Place, run: str) -> dict[str, Any]:
    lines = (place.folder / "state/runs" / run / "errors.jsonl").read_text().splitlines()
    report: dict[str, Any] = json.loads(lines[-1])["report"]
    return report


def test_anthropic_answers_after_an_overload_of_openai(place: Place) -> None:
    done = place.call("run", "w.yaml", "--quiet", "--run-id", "r", openai="overloaded")
    log = failwell("runs", "logs", "r", "--store", str(place.folder / "state")).out

    assert (done.data, place.calls) == ({"result": "Hello from the lab."}, (1, 1))
    assert "model openai-chat:gpt-lab: provider.overloaded; falling back" in log


def test_the_tokens_and_the_cost_of_every_attempt_are_recorded(place: Place) -> None:
    place.call("run", "w.yaml", "--quiet", "--run-id", "r", openai="overloaded", anthropic="truncated_output")

    first, second = report_of(place, "r")["attempts"]
    assert (first["provider"], first["kind"], first.get("usage")) == (
        "openai-chat",
        "provider.overloaded",
        None,
    )
    assert (second["provider"], second["kind"]) == ("anthropic", "provider.output_truncated")
    # Micro-cents: 9 tokens at 3 dollars and 5 at 4 dollars a million.
    assert (second["usage"], second["cost"]) == ({"input_tokens": 9, "output_tokens": 5}, 4_700)


@pytest.mark.acceptance("stud-cli 14")
def test_a_requested_delay_that_cannot_be_read_is_noted_in_the_audit(place: Place) -> None:
    place.call("run", "w.yaml", "--quiet", openai="rate_limited@garbage")

    [failed] = place.call("audit", "show", "--type", "model:failed", "--format", "json", openai="ok").data
    assert failed["data"]["kind"] == "provider.rate_limited"
    assert failed["data"]["ignored_waits"] == {"retry-after": "soon"}


@pytest.mark.acceptance("relavium 20")
def test_a_piece_that_was_shown_is_followed_by_the_error_and_by_no_other_model(place: Place) -> None:
    done = place.call("chat", "w.yaml", "-p", "hello", "--format", "json", openai="broken_stream")

    assert done.code == 1
    assert "Hello" in done.out
    assert "provider.stream_interrupted" in done.out + done.err
    assert place.calls == (1, 0)


@pytest.mark.acceptance("stud-cli 25")
def test_a_turn_that_is_sent_again_after_a_broken_stream_shows_and_records_nothing_twice(
    place: Place,
) -> None:
    (place.folder / "w.yaml").write_text(
        AGENT.replace("prompt: hello, max_attempts: 1", "prompt: hello, max_attempts: 3")
    )
    broken = place.call("chat", "w.yaml", "-p", "hello", "--format", "json", openai="broken_stream")
    again = place.call("chat", "--continue", "-p", "hello", openai="ok")

    shown = place.call("sessions", "show", "last", "--format", "json", openai="ok").data["conversation"]
    assert (broken.code, again.code) == (1, 0)
    assert place.calls == (2, 0)
    assert (broken.out.count("Hello"), again.out) == (1, "Hello from the lab.\n")
    assert [item["agent"] for item in shown if "agent" in item] == ["Hello from the lab."]


@pytest.mark.acceptance("relavium 21")
def test_a_stream_that_fails_before_its_first_piece_is_answered_by_the_next_model_alone(place: Place) -> None:
    done = place.call("chat", "w.yaml", "-p", "hello", openai="overloaded")

    assert (done.code, done.out, place.calls) == (0, "Hello from the lab.\n", (1, 1))


def test_a_step_that_has_shown_nothing_is_answered_by_the_next_model(place: Place) -> None:
    done = place.call("run", "w.yaml", "--quiet", openai="broken_stream")

    assert (done.data, place.calls) == ({"result": "Hello from the lab."}, (1, 1))


@pytest.mark.acceptance("pipelex 46")
def test_an_answer_with_an_unknown_stop_reason_is_an_answer_and_one_warning(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    def unknown(dialect: str, call: LabCall) -> Reply:
        reply = lab_reply("ok")(dialect, call)
        return replace(
            reply, pieces=tuple(piece.replace(b'"stop"', b'"moon_phase"') for piece in reply.pieces or ())
        )

    with scripted_lab("openai", unknown) as server:
        runs = [
            failwell(
                "run", "w.yaml", "--quiet", "--store", str(place.folder / "state"),
                cwd=place.folder,
                env={"OPENAI_API_KEY": "lab-credential", "OPENAI_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k"},
            )
            for _ in range(2)
        ]  # fmt: skip

    assert [done.data for done in runs] == [{"result": "Hello from the lab."}] * 2
    assert [done.err.count("warning: unknown stop reason") for done in runs] == [1, 0]
    warnings = [record for record in caplog.records if record.name == "failwell.stops"]
    assert [record.getMessage() for record in warnings] == [
        "unknown stop reason 'moon_phase' from openai-chat; the answer is taken for complete"
    ]
