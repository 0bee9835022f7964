"""The output of a script, built from its streams.

The outcome of a script: a result, or a failure of the right kind.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from failwell.errors.redact import redact_text
from failwell.errors.report import Scene, default_policy
from failwell.processes.capture import Capture
from failwell.workflows.envelope import Malformed, NotStorable, parse, violation
from failwell.workflows.failure import Failure, stderr_message
from failwell.workflows.machine.messages import Request
from failwell.workflows.output_schemas import OutputSchemas, SchemaMismatch
from failwell.workflows.plan import Plan
from failwell.workflows.running.executor import Success
from failwell.workflows.template.names import MISSING

_LONGEST_WORD = 16
"""More characters than a literal or an escape has, which may be cut in half."""


def output_of(
    stdout: str, stderr: str, exit_code: int | None, stdout_file: str | None, stderr_file: str | None
) -> dict[str, Any]:
    """The output of a script: its streams, its exit code, and the files with output that was too long."""
    output: dict[str, Any] = {"stdout": stdout, "stderr": stderr}
    if exit_code is not None:
        output["exit_code"] = exit_code
    if stdout_file is not None:
        output["stdout_file"] = stdout_file
    if stderr_file is not None:
        output["stderr_file"] = stderr_file
    return output


def object_of(text: str) -> dict[str, Any] | None:
    """The JSON object in a script's stdout, if stdout is exactly one.

    Raises:
        NotStorable: it is one, but holds what cannot be recorded.
    """
    bare = text.strip()
    if not (bare.startswith("{") and bare.endswith("}")):
        return None
    try:
        value = parse(bare.encode("utf-8"))
    except NotStorable:
        raise
    except Malformed:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def is_cut_object(head: str, text: str) -> bool:
    """Whether a stdout that was cut is one JSON object: `head` is its uncut beginning, and `text` ends as it does.

    An object that ends within the head is the first line of many, as a log in JSON lines is.
    """
    from json import JSONDecodeError, JSONDecoder

    bare = head.lstrip()
    if not bare.startswith("{") or not text.rstrip().endswith("}"):
        return False
    try:
        JSONDecoder().raw_decode(bare)
    except JSONDecodeError as error:
        return error.pos >= len(bare) - _LONGEST_WORD or error.msg.startswith("Unterminated string")
    except (RecursionError, ValueError):
        return True
    return False


_TAIL = 2_000
"""Characters of stderr in a failure."""
Raised = Failure | Malformed | None
Usage = Mapping[str, Any] | None


class Outcome:
    """Derives the outcome of one execution of a script step."""

    def __init__(self, request: Request, plan: Plan, schemas: OutputSchemas) -> None:
        self._request, self._plan, self._schemas = request, plan, schemas

    def ended(
        self,
        code: int,
        output: dict[str, Any],
        raised: Raised,
        stderr_end: str,
        stdout: Capture,
        usage: Usage,
    ) -> Success | Failure:
        """The script ended by itself. The failure that it raised takes precedence over its exit code."""
        node = self._request.node
        parsed, not_storable = None, ""
        try:
            parsed = None if stdout.was_cut else object_of(output["stdout"])
        except NotStorable as error:
            not_storable = f"stdout is JSON that cannot be recorded: {error}"
        if stdout.was_cut and (node.output is not None or is_cut_object(stdout.head, output["stdout"])):
            not_storable = (
                f"stdout has {stdout.size:,} bytes, more than its limit of {stdout.limit:,}; print less, or set"
                f" `output_limit: {stdout.size}` or more on the step"
            )
        merged = {**output, **(parsed or {})}
        if isinstance(raised, Failure):
            return replace(raised, output=merged, usage=usage)
        if raised is not None:
            return self._violated(str(raised), merged, usage)
        if code != 0 and node.is_opted_in:
            return self._exited(code, stderr_end, merged, usage)
        if not_storable:
            return self._violated(not_storable, merged, usage)
        if node.output is not None:
            if parsed is None:
                return self._violated("stdout is not exactly one JSON object", merged, usage)
            try:
                self._schemas.check(node.output, parsed, output)
            except SchemaMismatch as error:
                return self._violated(str(error), merged, usage, error.field)
        return Success(output=merged, usage=usage)

    def timed_out(
        self, limit: float, output: dict[str, Any], raised: Raised, survivors: set[int], usage: Usage
    ) -> Failure:
        """The script reached its time limit and was stopped."""
        details: dict[str, Any] = {"timeout": limit, "command": self._command}
        if isinstance(raised, Failure):
            details["raised"] = {"kind": raised.kind, "message": raised.report.message}
        if survivors:
            details["survivors"] = sorted(survivors)
        message = f"script did not end within {limit:g} s and was stopped with everything that it had started"
        return self._failed("internal.script_timeout", message, details, output, usage)

    def not_started(self, error: OSError | ValueError) -> Failure:
        """The command could not be started. A lack of memory or handles is not the author's mistake."""
        kind, reason = "internal.spawn_failed", "its arguments or variables hold a zero byte or a bad name"
        details: dict[str, Any] = {"command": self._command}
        folder = self._request.call.get("working_dir")
        if isinstance(error, OSError):
            from failwell.adapters.vendors.python import read_oserror

            reading = read_oserror(error)
            details.update(reading.details)
            if (reading.kind or "").startswith(("resource.", "tool.busy")):
                kind = str(reading.kind)
            reason = (error.strerror or "no reason was given").lower()
            if folder is not None and error.filename == folder:
                details["working_dir"] = folder
                reason = f"its working directory cannot be entered: {reason}"
            elif details.get("errno") == "ENOEXEC":
                reason = f"{reason}; a script needs a first line such as `#!/bin/sh`"
        message = f"command `{self._command}` did not start: {reason}"
        return self._failed(kind, message, details, None, None)

    def _violated(
        self, reason: str, output: dict[str, Any], usage: Usage, field: str | None = None
    ) -> Failure:
        extra = {} if field is None else {"failed_field": field}
        message, details = violation(self._request.node.name, "script", reason, **extra)
        return self._failed("internal.schema_violation", message, details, output, usage)

    def _exited(self, code: int, stderr_end: str, output: dict[str, Any], usage: Usage) -> Failure:
        # Redacted before it is cut, so that no part of a secret is left at the edge.
        tail = redact_text(stderr_end, 2 * len(stderr_end) + 100)[-_TAIL:]
        message = f"script exited with code {code}"
        details: dict[str, Any] = {"exit_code": code, "command": self._command}
        if code < 0:
            details["signal"] = _signal_name(-code)
            message = f"script was ended by {details['signal']}"
        if not default_policy().keeps_message:
            failed = self._failed("internal.script_error", message, details, output, usage)
            return replace(failed, stderr_tail=tail)
        details["stderr_tail"] = tail
        message = stderr_message(message, details)
        failed = self._failed("internal.script_error", message, details, output, usage)
        # What a script prints is for operators.
        return replace(failed, report=replace(failed.report, caller_facing=False))

    def _failed(
        self, kind: str, message: str, details: dict[str, Any], output: dict[str, Any] | None, usage: Usage
    ) -> Failure:
        failed = Failure.of(
            kind, message, details=details, typed=self._request.node.is_opted_in, scene=self.scene
        )
        return replace(failed, output=MISSING if output is None else output, usage=usage)

    @property
    def _command(self) -> str:
        return redact_text(str(self._request.call["command"]), 500)

    @property
    def scene(self) -> Scene:
        """The position of the script in the run."""
        request = self._request
        return Scene(
            run=request.run,
            workflow=request.workflow,
            node=request.node.name,
            item=request.item,
            attempt=request.attempt,
        )


def _signal_name(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
