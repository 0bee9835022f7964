"""The values of a step → its spec in the plan."""

from collections.abc import Callable, Mapping
from typing import Any

from failwell.workflows.compile.agent_settings import AGENT
from failwell.workflows.compile.route_shapes import AgentRetry
from failwell.workflows.plan import (
    AgentSpec,
    CallSpec,
    NotificationSpec,
    ScriptSpec,
    SetSpec,
    Spec,
    TerminateSpec,
    WaitSpec,
    WorkflowSpec,
)  # fmt: skip

Build = Callable[[Mapping[str, Any]], Spec]


def agent_spec(values: Mapping[str, Any]) -> Spec:
    """The spec of an agent step."""
    settings = {key: values[key] for key in AGENT if key in values}
    retry = values.get("retry")
    if isinstance(retry, AgentRetry) and retry.corrections is not None:
        settings["max_parse_recovery_attempts"] = retry.corrections
    return AgentSpec(
        prompt=values.get("prompt"),
        system_prompt=values.get("system_prompt"),
        model=values.get("model"),
        timeout=values.get("timeout_seconds"),
        settings=settings,
    )


def script_spec(values: Mapping[str, Any]) -> Spec:
    """The spec of a script step."""
    return ScriptSpec(
        command=values["command"],
        args=values.get("args", ()),
        env=values.get("env") or {},
        env_from=values.get("env_from") or {},
        working_dir=values.get("working_dir"),
        stdin=values.get("stdin"),
        timeout=values.get("timeout"),
        output_limit=values.get("output_limit"),
    )


def job_spec(values: Mapping[str, Any]) -> Spec:
    """The spec of a job step."""
    return CallSpec(
        target=values["job"], arguments=values.get("arguments") or {}, timeout=values.get("timeout_seconds")
    )


def tool_spec(values: Mapping[str, Any]) -> Spec:
    """The spec of a tool step."""
    return CallSpec(
        target=values["tool"],
        arguments=values.get("arguments") or {},
        timeout=values.get("timeout_seconds", values.get("timeout")),
        settings={"server": values["server"]} if "server" in values else {},
    )


def set_spec(values: Mapping[str, Any]) -> Spec:
    """The spec of a set step."""
    return SetSpec(
        value=values.get("value"), values=values.get("values"), output_type=values.get("output_type", "auto")
    )


def wait_spec(values: Mapping[str, Any]) -> Spec:
    """The spec of a wait step."""
    return WaitSpec(duration=values["duration"], reason=values.get("reason"))


def notification_spec(values: Mapping[str, Any]) -> Spec:
    """The spec of a notification step."""
    return NotificationSpec(
        emit=values.get("emit") or values["notification"], payload=values.get("payload") or {}
    )


def terminate_spec(values: Mapping[str, Any]) -> Spec:
    """The spec of a terminate step."""
    return TerminateSpec(
        status=values["status"], reason=values["reason"], output_template=values.get("output_template")
    )


def workflow_spec(values: Mapping[str, Any]) -> Spec:
    """The spec of a workflow step."""
    return WorkflowSpec(
        path=values["workflow"],
        input_mapping=values.get("input_mapping"),
        max_depth=values.get("max_depth", 10),
        timeout=values.get("timeout_seconds"),
    )
