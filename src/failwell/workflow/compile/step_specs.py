"""The values of a step, once they are read → its spec in the plan."""

from collections.abc import Callable, Mapping
from typing import Any

from failwell.workflow.compile.agent_settings import AGENT
from failwell.workflow.plan import (
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


def agent_spec(got: Mapping[str, Any]) -> Spec:
    """The spec of an agent step."""
    settings = {key: got[key] for key in AGENT if key in got}
    return AgentSpec(
        prompt=got.get("prompt"),
        system_prompt=got.get("system_prompt"),
        model=got.get("model"),
        timeout=got.get("timeout_seconds"),
        settings=settings,
    )


def script_spec(got: Mapping[str, Any]) -> Spec:
    """The spec of a script step."""
    return ScriptSpec(
        command=got["command"],
        args=got.get("args", ()),
        env=got.get("env") or {},
        env_from=got.get("env_from") or {},
        working_dir=got.get("working_dir"),
        stdin=got.get("stdin"),
        timeout=got.get("timeout"),
        output_limit=got.get("output_limit"),
    )


def job_spec(got: Mapping[str, Any]) -> Spec:
    """The spec of a job step."""
    return CallSpec(
        target=got["job"], arguments=got.get("arguments") or {}, timeout=got.get("timeout_seconds")
    )


def tool_spec(got: Mapping[str, Any]) -> Spec:
    """The spec of a tool step."""
    return CallSpec(
        target=got["tool"],
        arguments=got.get("arguments") or {},
        timeout=got.get("timeout_seconds", got.get("timeout")),
        settings={"server": got["server"]} if "server" in got else {},
    )


def set_spec(got: Mapping[str, Any]) -> Spec:
    """The spec of a set step."""
    return SetSpec(
        value=got.get("value"), values=got.get("values"), output_type=got.get("output_type", "auto")
    )


def wait_spec(got: Mapping[str, Any]) -> Spec:
    """The spec of a wait step."""
    return WaitSpec(duration=got["duration"], reason=got.get("reason"))


def notification_spec(got: Mapping[str, Any]) -> Spec:
    """The spec of a notification step."""
    return NotificationSpec(emit=got.get("emit") or got["notification"], payload=got.get("payload") or {})


def terminate_spec(got: Mapping[str, Any]) -> Spec:
    """The spec of a terminate step."""
    return TerminateSpec(
        status=got["status"], reason=got["reason"], output_template=got.get("output_template")
    )


def workflow_spec(got: Mapping[str, Any]) -> Spec:
    """The spec of a workflow step."""
    return WorkflowSpec(
        path=got["workflow"], input_mapping=got.get("input_mapping"), max_depth=got.get("max_depth", 10)
    )
