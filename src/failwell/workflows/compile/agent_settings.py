"""Blocks that agents use and that are kept as written: providers, servers, skills, plugins.

`tools` of a workflow file: names, or definitions of tools that agents and `tool` steps call.
"""

from typing import Any

from failwell.files.item_tree import Item, Path
from failwell.files.mistakes import MistakeLog
from failwell.files.shapes import ByType, Key, ListOf, MapOf, Ref, Shape
from failwell.files.template_types import Templated, TemplatedChoice, Verbatim
from failwell.files.value_types import AnyJson, Choice, Flag, Number, Text

_WORD = Text()
_TEXT = Text(allow_empty=True)
_TEXTS = ListOf(_TEXT)
_MAP = MapOf(_TEXT)
_SECONDS = Number(1)
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_TIERS = ("default", "long_context")

_PLUGIN = ByType(
    "a name, or a mapping with `name`",
    text=_WORD,
    mapping=Shape(
        "a plugin",
        {
            "name": Key(_WORD, "an installed plugin, `plugin@source`, or a path", required=True),
            "skills": Key(Flag(), "whether its skills are loaded"),
            "agents": Key(Flag(), "whether its agents are registered"),
            "mcp": Key(Flag(), "whether its MCP servers are started"),
        },
    ),
)
PLUGIN = Ref("plugin", lambda: _PLUGIN)
_PLUGIN_SOURCE = ByType(
    "a source, or a mapping with `source`",
    text=_WORD,
    mapping=Shape(
        "a plugin source",
        {
            "source": Key(_WORD, "`owner/repo#ref`, an address, or a path", required=True),
            "path": Key(_WORD, "the folder inside it"),
            "plugin": Key(_WORD, "the one plugin that it holds"),
        },
    ),
)
_SCOPES = Choice("workflow", "agent", "item", "none")

_CREDENTIAL = ByType(
    "a text, or where it is",
    text=_WORD,
    mapping=Shape(
        "`api_key`",
        {
            "env": Key(_WORD, "a variable of the environment, read when the model is opened"),
            "keyring": Key(_WORD, "a service in the keyring of the system (needs the package `keyring`)"),
            "user": Key(_WORD, "the name in the keyring (default: `failwell`)"),
            "command": Key(ListOf(_WORD, min_items=1), "a program and its arguments, which prints it"),
        },
        one_of=("env", "keyring", "command"),
    ),
)

_PROVIDER = ByType(
    "a name, or a mapping",
    text=_WORD,
    mapping=Shape(
        "`provider`",
        {
            "name": Key(_WORD, "which provider"),
            "type": Key(_WORD, "the dialect of the endpoint"),
            "wire_api": Key(_WORD, "the variant of the interface"),
            "base_url": Key(_WORD, "the address of the endpoint"),
            "api_key": Key(
                _CREDENTIAL, "the key, better `{env: NAME}`, `{keyring: NAME}` or `{command: […]}`"
            ),
            "bearer_token": Key(_WORD, "better taken from the environment: `${NAME}`"),
            "auth_token": Key(_WORD, "better taken from the environment: `${NAME}`"),
            "auth_mode": Key(_WORD, "which credentials are used"),
            "auth": Key(_WORD, "how to sign in"),
            "sign_in": Key(
                Shape(
                    "`sign_in`",
                    {
                        "device_url": Key(
                            Text(r"https?://.+", "an address"),
                            "where a device code comes from",
                            required=True,
                        ),
                        "token_url": Key(
                            Text(r"https?://.+", "an address"), "where the token comes from", required=True
                        ),
                        "client_id": Key(_WORD, "the id of this program there", required=True),
                        "scope": Key(_WORD, "what the token is for"),
                    },
                ),
                "how a person signs in again when the key is refused (OAuth device flow)",
            ),
            "headers": Key(MapOf(_TEXT, min_items=1), "headers of every request"),
            "azure": Key(Shape("`azure`", {"api_version": Key(_WORD)}), "options of Azure"),
            "api_version": Key(_WORD, "the version of the interface"),
            "setting_sources": Key(ListOf(_WORD), "which settings files are read"),
            "runtime_url": Key(_WORD, "a runtime that is already there"),
            "runtime_token": Key(_WORD, "better taken from the environment: `${NAME}`"),
            "hermes_home": Key(_WORD),
            "hermes_toolsets": Key(_TEXTS),
            "hermes_skip_memory": Key(Flag()),
            "hermes_skip_context_files": Key(Flag()),
            "pool_endpoint": Key(_WORD),
            "inner_provider": Key(_WORD),
            "identifier_scope": Key(_SCOPES),
            "egress": Key(_WORD),
            "lifecycle": Key(_WORD),
        },
    ),
)
PROVIDER = Ref("provider", lambda: _PROVIDER)
_SERVER = Shape(
    "an MCP server",
    {
        "type": Key(Choice("stdio", "http", "sse"), "default: stdio"),
        "command": Key(_WORD, "the program of a stdio server"),
        "args": Key(_TEXTS),
        "env": Key(_MAP),
        "url": Key(_WORD, "the address of a remote server"),
        "headers": Key(_MAP),
        "timeout": Key(Number(0, integer=True), "milliseconds"),
        "tools": Key(_TEXTS, 'which tools are offered; `["*"]` is all'),
        "approval": Key(
            Choice("never", "ask"),
            "whether a person is asked before each call (default: unless it only reads)",
        ),
    },
    at_most=(("command", "url"),),
)
_CHECKPOINT = Shape(
    "`checkpoint`",
    {
        "every_agent": Key(Flag()),
        "every_seconds": Key(Number(1)),
        "keep_last": Key(Number(1, 100, integer=True)),
    },
)
_TOOL_OUTPUT = Shape(
    "`tool_output`",
    {
        "enabled": Key(Flag()),
        "max_chars": Key(Number(1000, integer=True)),
        "spill_to_file": Key(Flag()),
        "spill_dir": Key(_TEXT),
    },
)
_INJECTION = Shape(
    "`skill_injection`",
    {"warn_bytes": Key(Number(0, integer=True)), "max_bytes": Key(Number(0, integer=True))},
)
_DISCOVERY = Shape(
    "`skill_discovery`",
    {"sources": Key(ListOf(Choice("personal", "project"), distinct=True)), "exclude": Key(ListOf(_WORD))},
)

RUNTIME = Shape(
    "`runtime`",
    {
        "provider": Key(PROVIDER, "who answers the agents"),
        "default_model": Key(_WORD, "the model of agents that name none"),
        "mcp_servers": Key(MapOf(_SERVER), "servers of tools"),
        "temperature": Key(Number(0, 2)),
        "max_tokens": Key(Number(1, 200_000, integer=True), "of one answer"),
        "timeout": Key(_SECONDS, "seconds of one request"),
        "max_session_seconds": Key(_SECONDS, "seconds of one agent's session"),
        "max_agent_iterations": Key(Number(1, 500, integer=True), "rounds of tool calls"),
        "idle_timeout_seconds": Key(_SECONDS),
        "max_idle_recovery_attempts": Key(Number(0, integer=True)),
        "default_reasoning_effort": Key(Choice(*_EFFORTS)),
        "default_context_tier": Key(Choice(*_TIERS)),
        "checkpoint": Key(_CHECKPOINT, "accepted; every step is recorded anyway"),
        "tool_output": Key(_TOOL_OUTPUT, "how long results of tools may be"),
        "working_dir": Key(_WORD, "where agents work"),
        "skills": Key(ListOf(_WORD), "skills of every agent"),
        "skill_injection": Key(_INJECTION),
        "skill_discovery": Key(_DISCOVERY),
        "plugin_sources": Key(MapOf(_PLUGIN_SOURCE)),
        "plugins": Key(ListOf(PLUGIN)),
    },
    about="Who answers the agents, and with what.",
)
COST = Shape(
    "`cost`",
    {
        "show_per_agent": Key(Flag()),
        "show_summary": Key(Flag()),
        "pricing": Key(
            MapOf(
                Shape(
                    "a price",
                    {
                        "input_per_mtok": Key(Number(0), "USD for a million tokens", required=True),
                        "output_per_mtok": Key(Number(0), "USD for a million tokens", required=True),
                        "cache_read_per_mtok": Key(Number(0)),
                        "cache_write_per_mtok": Key(Number(0)),
                    },
                )
            ),
            "prices of models",
        ),
    },
)
MCP = Shape(
    "`mcp`",
    {
        "expose": Key(Flag(), "whether the workflow is offered as a tool"),
        "mode": Key(Choice("async", "sync", "auto")),
        "read_only": Key(Flag()),
        "destructive": Key(Flag()),
        "estimated_minutes": Key(Number(1, integer=True)),
    },
)

_FALLBACK = Shape(
    "a fallback",
    {
        "model": Key(_WORD, "`provider:model`", required=True),
        "max_attempts": Key(Number(1, 100, integer=True), "calls of this model, the first included"),
        "backoff": Key(
            Shape(
                "`backoff`",
                {
                    "curve": Key(Choice("fixed", "linear", "exponential"), "how the waits grow"),
                    "first": Key(Number(0, 3600), "seconds of the first wait"),
                    "longest": Key(Number(0, 3600), "seconds of the longest wait"),
                    "jitter": Key(Number(0, 1), "each wait is spread by this share of itself"),
                },
            ),
            "the waits between them",
        ),
    },
)

AGENT: dict[str, Key] = {
    "provider": Key(PROVIDER, "another provider than the workflow's"),
    "agent": Key(
        Text(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", "`module:object`"),
        "an agent that you have: of Pydantic AI or OpenAI Agents, or a compiled graph",
    ),
    "max_attempts": Key(Number(1, 100, integer=True), "calls of the model, the first included (default: 3)"),
    "fallback": Key(ListOf(_FALLBACK), "models that are called when the one before fails"),
    "tools": Key(_TEXTS, "the tools it may call (default: all)"),
    "tool_errors": Key(
        Choice("typed", "full"),
        "what the model sees of a failed tool: the typed error, or its redacted text as well (default: typed)",
    ),
    "output_mode": Key(Choice("raw", "envelope")),
    "max_session_seconds": Key(_SECONDS),
    "max_agent_iterations": Key(Number(1, 500, integer=True)),
    "reasoning": Key(
        Shape("`reasoning`", {"effort": Key(TemplatedChoice(*_EFFORTS), "how hard", required=True)})
    ),
    "context_tier": Key(TemplatedChoice(*_TIERS)),
    "dialog": Key(
        Shape(
            "`dialog`",
            {
                "trigger_prompt": Key(Templated(), "when a conversation is opened", required=True),
                "conversation_prompt": Key(Templated()),
            },
        )
    ),
    "validator": Key(
        Shape(
            "`validator`",
            {
                "criteria": Key(Templated(), "what a good answer is", required=True),
                "model": Key(Templated()),
                "max_retries": Key(Number(0, 1, integer=True)),
            },
        )
    ),
    "session_key": Key(_WORD),
    "sandbox": Key(
        Shape("`sandbox`", {"identifier_scope": Key(_SCOPES), "working_dir": Key(_WORD)}),
    ),
    "skills": Key(ListOf(_WORD)),
    "plugins": Key(ListOf(PLUGIN)),
    "working_dir": Key(Templated()),
    "settings_dir": Key(_WORD),
    "temperature": Key(Number(0, 2)),
    "max_tokens": Key(Number(1, 200_000, integer=True), "of one answer"),
}
"""Keys of an agent that are kept in its settings."""
for _key in AGENT.values():
    _key.type = Verbatim(_key.type, templated=True)


BUILTINS = ("read_file", "write_file", "list_directory", "run_command", "http_request")
_ALLOWS = frozenset({"run_command", "http_request"})
_FILES = frozenset({"read_file", "write_file", "list_directory"})
_PYTHON = r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*"


def _check(values: dict[str, Any], item: Item, path: Path, log: MistakeLog) -> None:
    builtin = values.get("builtin")
    needs = {
        "allow": ("`builtin: run_command` or `http_request`", builtin in _ALLOWS),
        "root": ("a `builtin` for files", builtin in _FILES),
        "headers": ("`builtin: http_request`", builtin == "http_request"),
        "allow_private": ("`builtin: http_request`", builtin == "http_request"),
        "parameters": ("`command`", "command" in values),
    }
    for key, (what, fits) in needs.items():
        if key in values and not fits:
            log.add(f"`{key}` belongs to {what}", item.key_place(key), (path, key), hint="remove it")


TOOL = Shape(
    "a tool",
    {
        "python": Key(Text(_PYTHON, "`module:function`"), "a function; its signature is the schema"),
        "command": Key(
            ListOf(Text(allow_empty=True), min_items=1),
            "a command, word by word; `{name}` in a word is an argument",
        ),
        "builtin": Key(Choice(*BUILTINS), "a tool that is here already"),
        "description": Key(Text(allow_empty=True), "what the model is told about it"),
        "parameters": Key(MapOf(AnyJson()), "JSON Schemas of a command's arguments"),
        "allow": Key(ListOf(Text()), "the exact commands, or hosts; none allows nothing"),
        "allow_private": Key(Flag(), "whether hosts with private addresses may be reached"),
        "root": Key(Text(), "the folder that the files are below; default: that of this file"),
        "headers": Key(MapOf(Text(allow_empty=True)), "headers of every request, unknown to the model"),
        "fixed": Key(MapOf(AnyJson()), "arguments that the file sets and the model cannot"),
        "effect": Key(
            Choice("read", "idempotent", "once"),
            "what a call does; default: `once`, it must not happen twice",
        ),
        "approval": Key(Choice("never", "ask"), "whether a person is asked before each call"),
        "timeout_seconds": Key(Number(0, 3600), "seconds of one call"),
        "max_attempts": Key(
            Number(1, 10, integer=True),
            "runs of one call, the first included, if a repeat can help; default: 1",
        ),
        "recovery": Key(
            Choice("none", "retry", "input"),
            "what a person is asked after a failed call: whether to repeat it, or for other arguments; default: nothing",
        ),
    },
    one_of=("python", "command", "builtin"),
    check=_check,
    about="A tool that agents may call.",
)
TOOLS = ByType(
    "a list of names, or definitions by name",
    list=ListOf(Text()),
    mapping=MapOf(TOOL, key=r"[A-Za-z_][A-Za-z0-9_-]{0,63}", must="letters, digits, `_` and `-`"),
)
