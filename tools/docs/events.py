"""The page of events: every type of fact that the code writes into a journal, and what it says.

The words are here; that they speak of every type, and of no other, is checked against the source.
"""

import ast
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src/failwell"
WRITERS = ("workflows/machine", "workflows/gates.py")

ROWS = {
    "run:started": "The first event: `run`, `workflow`, `file`, `digest`, `inputs` (secrets as marks), `metadata`; with `continues`, "
    "the run and the position that it continues from.",
    "run:resumed": "The run is resumed: `from_seq`, `by`, `active` (seconds worked on so far), raised `limits`, `idle` (seconds since its last event).",
    "run:paused": "The run waits for a person or for a time: `gates`, `blocked_until`.",
    "run:timeout": "The run's time limit was reached: `elapsed`, `limit`, and what was `running`. `run:ending` follows.",
    "run:cancelling": "A stop was requested: `reason`, `by`. Running steps are being stopped.",
    "run:ending": "The run has failed, and running steps are being stopped: `failure`, `error_type`, `node`.",
    "run:completed": "The last event of a run that completed: `outputs`, `usage`, `duration`.",
    "run:failed": "The last event of a run that failed: `failure`, `envelope`, `frames`, `error_type`, `node`, `typed`, "
    "`errors_file`, `usage`, `duration`.",
    "run:cancelled": "The last event of a run that was cancelled: `reason`, `by`, `usage`, `duration`; `forced` if its process was killed.",
    "node:started": "A step starts: `path`, `node`, `type`, `visit`, `attempt`, `key` (the idempotency key), `item`; `rerun` when it "
    "was running when the host died.",
    "node:completed": "It completed: `output`, `usage`, `attempt`, `duration_ms`.",
    "node:failed": "It failed, and is not retried: `failure`, and `output` if it had one.",
    "node:retrying": "It failed and will be retried: `failure`, `delay`, `until`, and `by`: `node`, `route` (with its index as `route`) or `parking`; `exit_code` of a script.",
    "node:waiting": "A `wait` step waits: `until`, `seconds`, `reason`.",
    "node:timeout": "A group or a sub-workflow reached its time limit, and what is below it is being stopped: `limit`, `failure`. `node:failed` follows.",
    "node:skipped": "A member of a group was skipped: `reason`.",
    "route:taken": "The route that was chosen: `node`, `to`, `on_error` (the kind), `output` that the route adds.",
    "phase:started": "A phase of a stage starts: `phase`, `attempt`, `visit`.",
    "phase:ended": "It ended, well or not: `phase`, `attempt`, `result`, `usage`; `error` is the kind of its failure.",
    "stage:failed": "A stage has failed and is not tried again: `failure`, and the `phase` that failed. Its last phases follow.",
    "stage:queued": "A failed stage runs again after all others (`retry-later`).",
    "stage:dequeued": "All others have ended, and a queued stage runs again.",
    "group:started": "A group starts: `keys`, for `for_each` its `items`, and `until` if it has a time limit.",
    "group:stopping": "Running members are being stopped: `because`.",
    "workflow:opening": "A sub-workflow whose path is a template is being read: `file`.",
    "workflow:started": "A sub-workflow starts: `file`, `workflow`, `digest`, `inputs`, `depth`, and `until` if it has a time limit.",
    "workflow:ended": "A sub-workflow has completed.",
    "human_gate:paused": "A person is asked: `gate`, `type` (`human_gate`, `questions`, `budget`, `limit`), `prompt`, `options`, `questions`, `assignee`, `expires_at`.",
    "human_gate:answered": "An answer arrived while no process drove the run; it takes effect when the run is resumed.",
    "human_gate:resumed": "The answer takes effect: `gate`, `decision`, `decided_by`, `payload`, `comment`.",
    "budget:warning": "The budget is spent, and the run continues: `spent_usd`, `limit_usd`, `threshold_pct`.",
    "budget:paused": "The budget is spent, and a person is asked: `spent_usd`, `limit_usd`, `gate`.",
    "limit:raised": "A person allowed more steps at an iteration limit: `limit`, `value`.",
    "notification": "What a `notification` step sends: `emission_id`, `schema_id`, `correlation`, `payload`.",
    "hook": "A text of `workflow.hooks`, rendered: `hook`, `text`, or `failed`.",
}


SESSION_ROWS = {
    "session:started": "The first event: `manifest` (the agent, its file with a digest, its models, tools and store).",
    "session:resumed": "Another process goes on, or another model is used: the `manifest`, and the `changes` that were accepted.",
    "session:input": "The user said something: `turn`, `text`.",
    "session:retried": "The latest turn is run again: `turn`.",
    "session:answered": "A model answered: `turn`, `provider`, `model`, `message` (text and tool calls), `used`.",
    "session:tool_started": "A tool is about to be called: `turn`, `call`, `tool`.",
    "session:tool_ended": "The result of a call: `turn`, `call`, `tool`, `result` as the model sees it, `kind` of a failure; `may_have_run` where the call was interrupted or "
    "cancelled.",
    "session:turn_ended": "The agent has answered: `turn`, `used`.",
    "session:turn_failed": "The turn failed: `turn`, `kind`, `report`, `used`.",
    "session:turn_cancelled": "The turn was cancelled: `turn`, `kind`, `reason`, `used`.",
    "session:closed": "The process left the session: `reason`. It can be resumed.",
}


def events_page() -> str:
    """A row for each type.

    Raises:
        ValueError: the code writes a type that has no row here, or the other way round.
    """
    written = written_types()
    if written != set(ROWS):
        missing, idle = sorted(written - set(ROWS)), sorted(set(ROWS) - written)
        raise ValueError(f"tools/docs/events.py: no row for {missing}; nothing writes {idle}")
    of_sessions = session_types()
    if of_sessions != set(SESSION_ROWS):
        raise ValueError(f"tools/docs/events.py: sessions write {sorted(of_sessions ^ set(SESSION_ROWS))}")
    lines = [
        "# Events of a run",
        "",
        "What the journal holds, and `failwell runs export` prints: one JSON object a line, with `seq` (from 0, without gaps),",
        "`type`, `at` (seconds since 1970) and `data`. `path` in the data names one execution: `build`, `fan[3]` (the fourth item),",
        "`group/member`, `child/step`. Ignore types that you do not know: there will be more.",
        "",
        "| type | meaning |",
        "| --- | --- |",
        *(f"| `{name}` | {meaning} |" for name, meaning in ROWS.items()),
        "",
        "## Events of a session",
        "",
        "What `failwell sessions export` prints, in the same form. `failwell chat --format json` prints them as they happen, with `text` for",
        "each piece of an answer and `result` for the end of the turn.",
        "",
        "| type | meaning |",
        "| --- | --- |",
        *(f"| `{name}` | {meaning} |" for name, meaning in SESSION_ROWS.items()),
    ]
    return "\n".join(lines) + "\n"


def written_types() -> set[str]:
    """The types of event that the source writes to a journal."""
    found: set[str] = set()
    for place in WRITERS:
        path = SOURCE / place
        for file in sorted(path.glob("*.py")) if path.is_dir() else [path]:
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                found |= _types(node)
    return found


def session_types() -> set[str]:
    """The types of event that sessions write."""
    return {
        node.elts[0].value
        for file in sorted((SOURCE / "sessions").glob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Tuple)
        and node.elts
        and isinstance(node.elts[0], ast.Constant)
        and isinstance(node.elts[0].value, str)
        and node.elts[0].value.startswith("session:")
    }


def _types(node: ast.AST) -> set[str]:
    match node:
        case ast.Call(func=ast.Attribute(attr="record"), args=[ast.Constant(value=str(name)), *_]):
            return {name}
        case ast.Call(func=ast.Name(id="_finish"), args=[_, ast.Constant(value=str(name)), *_]):
            return {name}
        case ast.Tuple(elts=[ast.Constant(value=str(name)), _, _]) if ":" in name:
            return {name}
        case _:
            return set()
