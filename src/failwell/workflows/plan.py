"""The plan of a workflow: the content of its file, typed and checked.

`compile` builds plans from files, and the machine executes them. Plans are frozen. They contain no engine, and
no environment variable that the file does not use.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from failwell.calls.policy import Match, Policy
from failwell.errors.axes import Category
from failwell.errors.frozen import frozen
from failwell.files.item_tree import Place, Template

END = "$end"
"""The target of a route that ends the workflow."""

NodeType = Literal[
    "agent", "script", "job", "tool", "human_gate", "questions", "set", "wait", "notification", "terminate",
    "workflow", "stage", "parallel", "for_each",
]  # fmt: skip
GROUPS: frozenset[str] = frozenset({"parallel", "for_each"})
PEOPLE: frozenset[str] = frozenset({"human_gate", "questions"})
"""Nodes that a person answers. They are never members of a group."""
FailureMode = Literal["fail_fast", "continue_on_error", "all_or_nothing"]
ContextMode = Literal["accumulate", "last_only", "explicit"]
OnExceed = Literal["fail", "warn", "pause_for_approval"]


Value = Any
"""JSON whose strings are `Template`s, to any depth: mappings, lists, numbers, booleans, null."""


@frozen
class Route:
    """A route out of a node. Exactly one of `to`, `retry`, `halt` and `propagate` is set."""

    on_error: Match | None = None
    """The failures that it handles; `None` for a success route."""
    when: Template | None = None
    to: str | None = None
    retry: Policy | None = None
    """Run the same node again; see `retry_policy`."""
    halt: Template | None = None
    propagate: bool = False
    output: Mapping[str, Value] = field(default_factory=dict[str, Value])
    place: Place | None = None


@frozen
class ScriptSpec:
    """A command of the operating system."""

    command: Template
    args: tuple[Template, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """As written: not templates."""
    env_from: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variable → dotted reference (`workflow.input.token`); the way in for secrets."""
    working_dir: Template | None = None
    stdin: Template | None = None
    """`None` gives the script nothing to read; an empty text sends the end at once."""
    timeout: float | None = None
    output_limit: int | None = None
    """Bytes of each stream that are kept; the rest goes to a file."""


@frozen
class AgentSpec:
    """A turn of a model. Settings are kept as written, with texts as templates."""

    prompt: Template | None = None
    system_prompt: Template | None = None
    model: Template | None = None
    timeout: float | None = None
    settings: Mapping[str, Value] = field(default_factory=dict[str, Value])


@frozen
class CallSpec:
    """A `job` (a capability, by name) or a `tool` call, with its arguments."""

    target: str
    arguments: Mapping[str, Value] = field(default_factory=dict[str, Value])
    timeout: float | None = None
    settings: Mapping[str, Value] = field(default_factory=dict[str, Value])


@frozen
class Option:
    """One answer that a gate offers."""

    label: Template
    value: str
    route: str
    prompt_for: str | None = None
    multiline: bool = False


@frozen
class GateSpec:
    """A decision by a person."""

    prompt: Template
    options: tuple[Option, ...]
    assignee: Template | None = None
    timeout: float | None = None
    timeout_option: str | None = None
    """The value that is chosen when the time is up; without one the node fails with `limit.run_timeout`."""
    reject: tuple[str, ...] = ()
    """Values whose choice fails the node (`on_reject: fail`)."""


@frozen
class Question:
    """One question of a `questions` node."""

    id: str
    text: Template
    hint: Template | None = None
    choices: tuple[Template, ...] = ()
    default: Value = None
    required: bool = False
    allow_free_text: bool = True
    multiline: bool = True


@frozen
class QuestionsSpec:
    """Questions that a person answers one by one, written here or computed at run time."""

    questions: tuple[Question, ...] = ()
    source: str | None = None
    abort_route: str | None = None
    """The step after an abort; `None` if aborting is not allowed."""
    prompt: Template | None = None
    allow_back: bool = True
    allow_skip: bool = True
    allow_skip_all: bool = True


@frozen
class SetSpec:
    """Values computed from the context: one `value`, or several by name."""

    value: Value = None
    values: Mapping[str, Value] | None = None
    output_type: Literal["auto", "string", "number", "integer", "boolean", "list", "dict"] = "auto"


@frozen
class WaitSpec:
    """A pause: seconds, or a template that renders to `500ms`, `60s`, `2.5m`, `1h` or a number."""

    duration: float | Template
    reason: Template | None = None


@frozen
class NotificationSpec:
    """A notification of a type that the workflow declares."""

    emit: str
    payload: Mapping[str, Value] = field(default_factory=dict[str, Value])


@frozen
class TerminateSpec:
    """The end of the run, on purpose."""

    status: Literal["success", "failed"]
    reason: Template
    output_template: Mapping[str, Value] | None = None


@frozen
class WorkflowSpec:
    """Another file, run as a step of this one."""

    path: Template
    input_mapping: Mapping[str, Value] | None = None
    """`None` passes on the inputs of the parent."""
    max_depth: int = 10
    timeout: float | None = None
    """Seconds for the whole sub-workflow."""


@frozen
class Member:
    """One member of a parallel group. `when` is evaluated when the group starts."""

    name: str
    when: Template | None = None


@frozen
class ParallelSpec:
    """Different nodes side by side."""

    members: tuple[Member, ...]
    failure_mode: FailureMode = "fail_fast"
    max_concurrent: int | None = None
    timeout: float | None = None
    """Seconds for all members together."""


@frozen
class ForEachSpec:
    """One node for each item of a list, with limited concurrency."""

    source: str
    """A dotted reference into the context, such as `finder.output.files`."""
    variable: str
    body: "Node"
    failure_mode: FailureMode = "fail_fast"
    max_concurrent: int = 10
    key_by: str | None = None
    timeout: float | None = None
    """Seconds for all items together."""


Verdict = Literal["proceed", "ok", "retry", "skip", "fail"]
Resolution = Literal["skip", "retry-later", "abort-workflow"]
PhaseName = Literal["setup", "init", "checkGate", "act", "assert", "exit", "next"]
PHASES: tuple[PhaseName, ...] = ("setup", "init", "checkGate", "act", "assert", "exit", "next")
"""The phases of a stage, in order."""


@frozen
class Check:
    """A rule of `checkGate` or `assert`: the verdict if its condition holds."""

    verdict: Verdict
    when: Template | None = None
    feedback: Template | None = None
    """What the next attempt is told."""
    kind: str | None = None
    """The kind of the failure, for the verdicts `retry` and `fail`."""


@frozen
class StageSpec:
    """A stage of a state machine: seven phases, of which `act` is a turn of a model."""

    setup: Mapping[str, Value] = field(default_factory=dict[str, Value])
    """Values that it writes into the context."""
    body: Template | None = None
    """The system prompt, rendered by `init`."""
    prompt: Template | None = None
    gate: tuple[Check, ...] = ()
    checks: tuple[Check, ...] = ()
    """The rules of `assert`; the first that holds decides."""
    exit: Mapping[str, Value] | None = None
    """The output; `None` for the output of `act`."""
    code: Mapping[str, str] = field(default_factory=dict[str, str])
    """Phase → `module:function`, for phases in Python."""
    allowed_tools: tuple[str, ...] = ()
    grants: Literal["ask", "deny"] = "deny"
    """Whether a person may grant a single call of a tool that is not allowed."""
    completion_tool: str | None = None
    completion_schema: Mapping[str, Any] | None = None
    turn_cap: int = 20
    """Model calls of one attempt; reaching it ends `act`."""
    visit_cap: int = 10
    resolution: Resolution = "abort-workflow"
    model: Template | None = None
    timeout: float | None = None
    settings: Mapping[str, Value] = field(default_factory=dict[str, Value])
    """Settings of the agent, as written."""


Spec = (
    ScriptSpec | AgentSpec | CallSpec | GateSpec | QuestionsSpec | SetSpec | WaitSpec | NotificationSpec
    | TerminateSpec | WorkflowSpec | StageSpec | ParallelSpec | ForEachSpec
)  # fmt: skip


@frozen
class Node:
    """One step, of any type."""

    name: str
    type: NodeType
    spec: Spec
    description: str = ""
    input: tuple[str, ...] = ()
    """References that `explicit` mode grants, as written, a trailing `?` for optional ones."""
    raises: tuple[str, ...] | None = None
    routes: tuple[Route, ...] = ()
    retry: Policy | None = None
    """The retries before any route is considered; see `retry_policy`."""
    output: Mapping[str, Any] | None = None
    """JSON Schema of the output, where one was declared."""
    idempotent: bool = False
    """Whether a repeat after an unknown outcome is safe."""
    estimate_usd: float | None = None
    """The expected cost, reserved in the budget while the node runs."""
    place: Place | None = None

    @property
    def is_opted_in(self) -> bool:
        """Whether the author uses typed failures for this node. Only then is a non-zero exit code a failure."""
        return bool(self.raises) or any(route.on_error is not None for route in self.routes)


@frozen
class Input:
    """One declared input of a workflow."""

    name: str
    type: Literal["string", "number", "boolean", "array", "object"]
    required: bool = True
    default: Any = None
    has_default: bool = False
    description: str = ""
    secret: bool = False
    place: Place | None = None


@frozen
class Limits:
    """The limits of a run. `None` is no limit."""

    max_iterations: int | None = None
    """`None`: each node once, and never fewer than ten."""
    timeout_seconds: float | None = None
    budget_usd: float | None = None
    on_exceed: OnExceed = "warn"
    unpriced: Literal["refuse", "allow"] = "refuse"
    """Whether a step may report tokens without their cost under a budget that stops the run."""
    max_parallel: int | None = None
    """How many leaves may run at once in the whole run."""
    park_after_seconds: float = 60.0
    """A longer requested delay parks the run instead of being waited out."""


@frozen
class DeclaredKind:
    """An entry of `kinds:`."""

    name: str
    category: Category
    summary: str = ""
    place: Place | None = None


@frozen
class NotificationType:
    """A declared type of notification; `payload` is a JSON Schema."""

    name: str
    version: str
    payload: Mapping[str, Any]


@frozen
class Notifications:
    """The `workflow.notifications` block."""

    namespace: str
    correlation: tuple[str, ...] = ()
    types: Mapping[str, NotificationType] = field(default_factory=dict[str, NotificationType])


@frozen
class Plan:
    """One workflow file, compiled."""

    name: str
    entry: str
    nodes: Mapping[str, Node]
    """Every step and group by name, in the order of the file; the bodies of `for_each` are inside their group."""
    file: str = ""
    digest: str = ""
    """SHA-256 of the file and its includes, as on disk."""
    description: str = ""
    version: str = ""
    inputs: Mapping[str, Input] = field(default_factory=dict[str, Input])
    context_mode: ContextMode = "accumulate"
    limits: Limits = Limits()
    output: Mapping[str, Value] = field(default_factory=dict[str, Value])
    kinds: Mapping[str, DeclaredKind] = field(default_factory=dict[str, DeclaredKind])
    hooks: Mapping[str, Template] = field(default_factory=dict[str, Template])
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notifications: Notifications | None = None
    runtime: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tools: tuple[str, ...] = ()
    tool_definitions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """Tool → its definition, for those that the file defines."""
    instructions: tuple[Template, ...] = ()
    files: tuple[str, ...] = ()
    """The file and its includes, as paths."""
    children: tuple[str, ...] = ()
    """Files of sub-workflows whose path has no template, relative to this one."""
    max_iterations: int = field(init=False)
    """The number of steps after which a run is stopped as an endless loop."""

    def __post_init__(self) -> None:
        steps = self.limits.max_iterations
        if steps is None:
            # Stages have their own cap of visits, which is reached first.
            specs = (node.spec for node in self.nodes.values())
            steps = max(10, sum(spec.visit_cap * 10 if isinstance(spec, StageSpec) else 1 for spec in specs))
        object.__setattr__(self, "max_iterations", steps)

    @property
    def folder(self) -> str:
        """The folder for relative paths."""
        head, _, _ = self.file.replace("\\", "/").rpartition("/")
        return head or "."
