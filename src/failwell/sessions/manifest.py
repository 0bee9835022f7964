"""What a session is held with: the agent, its models and tools, and the store that records it.

It is recorded when the session begins, and compared when it is resumed.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, cast

from failwell.errors.frozen import frozen
from failwell.sessions.agent import SessionAgent

FORMAT = 1
"""The newest form of a manifest that this version reads."""


class NewerManifest(ValueError):
    """A newer version wrote the manifest."""


@frozen
class Manifest:
    """What is recorded about the agent of a session. It holds no key and no address."""

    store: str
    """The id of the store."""
    file: str
    agent: str
    digest: str
    models: tuple[str, ...] = ()
    tools: Mapping[str, str] = field(default_factory=dict[str, str])
    """Tool → its effect and whether a person approves it. The name of an MCP server stands for its tools."""
    approvals: str = "ask"
    model: str | None = None
    """The model that is called instead of the agent's own."""

    def to_dict(self) -> dict[str, Any]:
        """The manifest as JSON."""
        return {
            "format": FORMAT,
            "store": self.store,
            "file": self.file,
            "agent": self.agent,
            "digest": self.digest,
            "models": list(self.models),
            "tools": dict(self.tools),
            "approvals": self.approvals,
            "model": self.model,
        }


def read_manifest(value: object) -> Manifest:
    """The manifest that `to_dict` wrote.

    Raises:
        NewerManifest: a newer version wrote it.
        ValueError: it is not one; the text says why.
    """
    if not isinstance(value, Mapping):
        raise ValueError("its manifest is missing")  # noqa: TRY004  (one type for every damage)
    data = cast("Mapping[str, Any]", value)
    form: object = data.get("format")
    if not isinstance(form, int):
        raise ValueError("its manifest has no format")  # noqa: TRY004
    if form > FORMAT:
        raise NewerManifest(f"its manifest has the format {form}, and this version reads up to {FORMAT}")
    texts = {key: data.get(key) for key in ("store", "file", "agent", "digest", "approvals")}
    for key, text in texts.items():
        if not isinstance(text, str):
            raise ValueError(f"`{key}` of its manifest is no text")  # noqa: TRY004
    models, tools, model = data.get("models"), data.get("tools"), data.get("model")
    if not isinstance(models, list) or not isinstance(tools, Mapping) or not isinstance(model, str | None):
        raise ValueError("its manifest names no models and tools")  # noqa: TRY004
    return Manifest(
        **cast("dict[str, str]", texts),
        models=tuple(str(name) for name in cast("list[object]", models)),
        tools={str(name): str(value) for name, value in cast("Mapping[object, object]", tools).items()},
        model=model,
    )


def manifest_of(
    agent: SessionAgent, *, store: str, approvals: str = "ask", model: str | None = None
) -> Manifest:
    """The manifest of an agent as its file is now."""
    return Manifest(
        store=store,
        file=agent.plan.file,
        agent=agent.node.name,
        digest=agent.plan.digest,
        models=_models(agent, model),
        tools=_tools(agent),
        approvals=approvals,
        model=model,
    )


def changes_between(recorded: Manifest, current: Manifest) -> list[str]:
    """What differs, one line each; nothing if the session can go on as it was."""
    lines: list[str] = []
    if recorded.agent != current.agent:
        lines.append(f"the agent is `{current.agent}` instead of `{recorded.agent}`")
    if recorded.digest != current.digest:
        lines.append(f"the file {current.file} was changed")
    if recorded.models != current.models:
        lines.append(f"the model is {_names(current.models)} instead of {_names(recorded.models)}")
    added = [name for name in current.tools if name not in recorded.tools]
    removed = [name for name in recorded.tools if name not in current.tools]
    changed = [name for name, value in current.tools.items() if recorded.tools.get(name, value) != value]
    for names, words in ((added, "new tools"), (removed, "missing tools"), (changed, "changed tools")):
        if names:
            lines.append(f"{words}: {', '.join(names)}")
    if recorded.approvals != current.approvals:
        lines.append(f"approvals are `{current.approvals}` instead of `{recorded.approvals}`")
    return lines


def _models(agent: SessionAgent, override: str | None) -> tuple[str, ...]:
    if override is not None:
        return (override,)
    runtime = agent.plan.runtime
    request = agent.request("manifest", 0, folder=agent.plan.folder)
    first: str | None = request.call["model"] or runtime.get("default_model")
    fallback = [entry["model"] for entry in request.call["settings"].get("fallback", ())]
    provider: object = request.call["settings"].get("provider") or runtime.get("provider")
    if isinstance(provider, Mapping):
        provider = cast("Mapping[str, object]", provider).get("name")
    prefix = f"{provider}:" if isinstance(provider, str) and first and ":" not in first else ""
    return tuple(name for name in (f"{prefix}{first or ''}", *fallback) if name)


def _tools(agent: SessionAgent) -> dict[str, str]:
    granted: list[str] | None = agent.request("manifest", 0, folder="").call["settings"].get("tools")
    tools = {
        name: " ".join([str(definition.get("effect", "once")), str(definition.get("approval", "default"))])
        for name, definition in agent.plan.tool_definitions.items()
        if granted is None or name in granted
    }
    servers: Mapping[str, Any] = agent.plan.runtime.get("mcp_servers") or {}
    return tools | {name: "server" for name in servers if granted is None or name in granted}


def _names(models: tuple[str, ...]) -> str:
    return ", ".join(models) or "none"
