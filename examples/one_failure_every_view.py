"""One failure, the way each of its readers sees it.

A model call is rate limited three layers down. It is classified once, where the reply was read, and
wrapped twice on the way up; every reader below gets its own words for that one report.

    python examples/one_failure_every_view.py
"""

import json
import sys

from rich.console import Console

import failwell
from failwell import errors
from failwell.capability import JobError
from failwell.delivery import agent_json, agent_markdown, panel, render_text
from failwell.errors import NotBefore, ProviderTransient, scene
from failwell.http import problem, retry_after_header
from failwell.integrations.mcp import tool_result
from failwell.logging import JsonFormatter, log_report


class StepFailed(failwell.Fault):
    """A step of the pipeline could not be finished."""


def call_model() -> str:
    """Ask a model; here, learn that the account's window is full."""
    raise ProviderTransient(
        kind="provider.rate_limited",
        message="openai is rate limiting this account: 30,000 tokens per minute are used up",
        provider="openai",
        model="gpt-5",
        provider_metadata=errors.ProviderMetadata(
            sdk="openai", status_code=429, code="rate_limit_exceeded", request_id="req_8f2b", retry_after=7.5
        ),
        not_before=NotBefore(after=7.5, source="header retry-after"),
        details={"window": "tokens/minute", "api_key": "sk-proj-this-must-never-be-seen-anywhere"},
    )


def summarise() -> str:
    """One step: adds its context, and leaves the classification alone."""
    try:
        return call_model()
    except failwell.Fault as error:
        raise StepFailed(message="step `summarise` failed on chapter 3 of 12") from error


def run() -> failwell.ErrorReport:
    """Run the pipeline and describe what came out of it."""
    try:
        with scene(run="run-42", workflow="book", node="summarise", attempt=1):
            summarise()
    except failwell.Fault as error:
        return failwell.describe(StepFailed.wrap(error, "the book was not summarised"))
    raise AssertionError("the call was meant to fail")


def show(console: Console, title: str, text: str) -> None:
    """One reader's view under its heading."""
    console.rule(f"[bold]{title}", align="left")
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def main() -> None:
    """Print the one report in every view."""
    import logging

    report = run()
    console = Console()
    console.print(panel(report, "user"))
    console.print(panel(report, "operator"))
    show(console, "plain text, for a pipe", render_text(report, "user"))
    show(console, "the model that made the call", json.dumps(report.view("model"), indent=2))
    show(console, "MCP tool result", json.dumps(tool_result(report), indent=2))
    show(console, "an agent, as JSON", json.dumps(agent_json(report), indent=2))
    show(console, "an agent, as Markdown", agent_markdown(report))
    show(console, f"an HTTP client: {report.http_status}, Retry-After: {retry_after_header(report)}",
         json.dumps(problem(report, instance="/books/7"), indent=2))  # fmt: skip
    show(console, "a job queue", json.dumps(JobError.from_report(report).to_dict(), indent=2))
    console.rule("[bold]a log line", align="left")
    logger = logging.getLogger("example")
    writer = logging.StreamHandler(sys.stdout)
    writer.setFormatter(JsonFormatter())
    logger.addHandler(writer)
    logger.propagate = False
    log_report(logger, report)
    show(console, "the audit trail (and any other process)", json.dumps(report.to_dict(), indent=2))
    again = failwell.ErrorReport.from_json(report.to_json())
    console.print(f"\nRead back from JSON it is the same report: {again == report}.", highlight=False)
    console.print("Ask for more with: failwell explain provider.rate_limited", highlight=False)


if __name__ == "__main__":
    main()
