"""What an agent reads: flat JSON and Markdown that nothing in it can break."""

import json
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from failwell.adapters.describe import describe
from failwell.delivery.agent_output import agent_json, agent_markdown
from failwell.errors.fault import Fault
from failwell.errors.report import Scene
from tests.delivery.builders import a_full_report, a_wait, make_report


def parsed(document: str) -> list[Token]:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(document)


def tokens(document: str) -> list[tuple[str, str]]:
    """Every token of the document, inline ones included, as (type, content)."""
    return [(one.type, one.content) for block in parsed(document) for one in (block, *(block.children or []))]


def test_an_agent_gets_one_flat_object() -> None:
    assert agent_json(a_full_report()) == {
        "error": True,
        "error_type": "RateLimitError",
        "kind": "provider.rate_limited",
        "message": "The provider turned the call away because a short usage window is full.",
        "hint": "Wait 8 s, then repeat the call.",
        "retryable": True,
        "error_domain": "runtime",
        "error_category": "transient",
        "model": "acme/large[preview]",
        "provider": "acme",
        "not_before": {
            "after": 7.5,
            "at": "2026-03-01T12:00:07.500000+00:00",
            "source": "retry-after",
            "confidence": "high",
        },
        "id": "err_1",
        "error_source": [
            "RateLimitError @ provider.rate_limited",
            "RateLimitError @ provider.rate_limited",
            "ConnectError @ provider.connection",
        ],
    }


def test_what_is_not_known_has_no_key() -> None:
    said = agent_json(make_report("provider.auth"))

    assert said.keys() == {
        "error", "error_type", "kind", "message", "hint", "error_domain", "error_category", "id", "error_source",
    }  # fmt: skip


def test_the_command_adds_to_the_object_and_wins() -> None:
    said = agent_json(make_report(), pipe_code="summarise", error_type="PipeFailed", valid=["run", "check"])

    assert said["pipe_code"] == "summarise"
    assert said["error_type"] == "PipeFailed"
    assert said["valid"] == ["run", "check"]


def test_an_extra_that_json_does_not_know_cannot_break_the_object() -> None:
    said = agent_json(make_report(), where=object(), ratio=float("inf"), api_key="abcdef123456")

    assert json.loads(json.dumps(said, allow_nan=False))["where"] == "<object>"
    assert said["ratio"] == "inf"
    assert said["api_key"] == "[redacted]"


def test_causes_are_listed_outermost_first_without_what_they_said() -> None:
    inner = OSError(28, "secret words of the system")
    middle = Fault.wrap(inner, "could not write the page")
    outer = Fault.wrap(middle, "the run failed")

    said = agent_json(describe(outer))

    assert said["error_source"] == [
        "Fault @ resource.disk",
        "Fault @ resource.disk",
        "OSError @ resource.disk",
    ]
    assert "secret words" not in json.dumps(said)


def test_an_agent_gets_a_short_document() -> None:
    report = make_report("provider.auth", provider="acme")

    assert agent_markdown(report, command="run", found={"line": 3}) == (
        "# Error: Fault\n"
        "\n"
        "The provider did not accept the credentials.\n"
        "\n"
        "> 💡 Check that the right key is configured and still valid.\n"
        "\n"
        "## Details\n"
        "\n"
        "- kind: `provider.auth`\n"
        "- error_domain: `config`\n"
        "- error_category: `configuration`\n"
        "- provider: `acme`\n"
        "- id: `err_1`\n"
        "- command: `run`\n"
        "- found:\n"
        "\n"
        "  ```json\n"
        "  {\n"
        '    "line": 3\n'
        "  }\n"
        "  ```\n"
        "\n"
        "## Error source\n"
        "\n"
        "```text\n"
        "Fault @ provider.auth\n"
        "```\n"
    )


HOSTILE = [
    "# a heading\n\n## another",
    "1. a list\n- and\n+ more",
    "<script>alert(1)</script> <!-- hidden -->",
    "[click](javascript:alert(1)) ![pixel](https://evil.example/?q=1)",
    "see https://evil.example/ or www.evil.example or mail a@evil.example",
    "```\nout of the fence\n```\n# free",
    "````json\n````",
    "> quoted\n\n---\n\n***",
    "|a|b|\n|-|-|\n|c|d|",
    "*bold* __strong__ ~~gone~~ `code` ``more``",
    "text\n===\n",
    "&lt;b&gt; \\* \\",
    "~~~\ntilde\n~~~",
    "    indented code",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_can_become_structure(text: str) -> None:
    plain = tokens(
        agent_markdown(replace(make_report(), message="m", error_type="T"), note="n", found={"k": "v"})
    )
    hostile = replace(
        make_report(),
        message=text,
        error_type=text,
        user_action=replace(make_report().user_action, detail=text),
    )

    document = agent_markdown(hostile, note=text, found={"k": text})

    assert [kind for kind, _ in tokens(document)] == [kind for kind, _ in plain]


def test_an_address_in_a_message_does_not_become_a_link() -> None:
    report = replace(make_report(), message="see https://evil.example, WWW.evil.example, mail a@evil.example")

    message = agent_markdown(report).split("\n")[2]

    assert message == r"see https\://evil.example, WWW\.evil.example, mail a\@evil.example"


@pytest.mark.parametrize("text", HOSTILE)
def test_a_reader_sees_the_very_words(text: str) -> None:
    document = agent_markdown(replace(make_report(), message=text))

    paragraph = parsed(document)[4].children or []
    shown = "".join(one.content for one in paragraph)

    assert shown == " ".join(text.split())


def test_a_fence_is_longer_than_any_inside() -> None:
    document = agent_markdown(make_report(), error_source=["```", "# free", "`````"])

    assert [content for kind, content in tokens(document) if kind == "fence"] == ["```\n# free\n`````\n"]


def test_control_characters_reach_neither_form() -> None:
    report = replace(make_report(), message="a\x1b[2Jb\u202ec", error_type="E\x1b", scene=Scene(run="r"))

    assert agent_json(report)["message"] == "a\\x1b[2Jb\\u202ec"
    assert agent_json(report)["error_source"] == ["E\\x1b @ provider.rate_limited"]
    assert all(c == "\n" or c.isprintable() for c in agent_markdown(report, note="\x07"))


def test_only_a_retryable_failure_says_so() -> None:
    assert agent_json(make_report())["retryable"] is True
    assert "retryable" not in agent_json(make_report("provider.quota_exhausted", not_before=a_wait(60)))


def test_a_failure_without_advice_has_no_hint() -> None:
    report = make_report("external.git.drift")

    assert "hint" not in agent_json(report)
    assert "💡" not in agent_markdown(report)


def test_a_command_may_put_something_else_in_the_place_of_the_causes() -> None:
    document = agent_markdown(make_report(), error_source={"file": "a.yaml"})

    assert [content for kind, content in tokens(document) if kind == "fence"] == ['{"file": "a.yaml"}\n']
