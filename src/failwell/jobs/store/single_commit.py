"""Writes the two commits that nearly every job needs, each by one statement: its start and its completion.

They write what `write_commit` writes. Several statements in a transaction cost twice as much as one that fires a trigger. The
triggers belong to the connection, so they are no part of the database, and other processes never fire them.
"""

from collections.abc import Sequence

from failwell.jobs.store.job_log import TABLE
from failwell.jobs.store.records import Committed, Values
from failwell.store.event import Event
from failwell.store.sqlite.database import Database

_MARK = "+"
"""In place of the numbers of the events of a job: the trigger is to insert its events."""
_COUNTS = f"(SELECT counts FROM {TABLE} ORDER BY seq DESC LIMIT 1)"  # noqa: S608  (constants)
_LAST = f"(SELECT max(seq) FROM {TABLE})"  # noqa: S608  (constants)
_SIX_COUNTS = f"""SELECT RAISE(ABORT, 'the latest event has no counts')
        WHERE NOT coalesce(json_valid({_COUNTS}) AND json_array_length({_COUNTS}) = 6, 0);"""
"""Another program wrote the latest event, or there is none."""
_TRIGGERS = f"""
PRAGMA temp_store = MEMORY;

CREATE TEMP TRIGGER IF NOT EXISTS start_job AFTER INSERT ON jobs WHEN NEW.events = '{_MARK}' BEGIN
    {_SIX_COUNTS}
    UPDATE jobs SET events = ({_LAST} + 1) || ',' || ({_LAST} + 2) || ',' WHERE key = NEW.key;
    INSERT INTO {TABLE} (seq, type, at, data, job, counts) VALUES ({_LAST} + 2, 'started', NEW.started, '{{}}', NEW.key,
        (SELECT json_set(counts, '$[1]', json_extract(counts, '$[1]') + 1) FROM {TABLE} ORDER BY seq DESC LIMIT 1));
    INSERT INTO {TABLE} (seq, type, at, data, job) VALUES ({_LAST} - 1, 'submitted', NEW.submitted, '{{}}', NEW.key);
END;

CREATE TEMP VIEW IF NOT EXISTS completions AS SELECT key, owner, ended, result FROM jobs;

CREATE TEMP TRIGGER IF NOT EXISTS complete_job INSTEAD OF INSERT ON completions BEGIN
    {_SIX_COUNTS}
    SELECT RAISE(ABORT, 'a group may end with it') WHERE EXISTS (SELECT 1 FROM job_groups WHERE ended IS NULL);
    UPDATE jobs SET state = 'completed', ended = NEW.ended, result = NEW.result, error = NULL,
        events = events || ({_LAST} + 1) || ',' WHERE key = NEW.key AND owner = NEW.owner;
    SELECT RAISE(ABORT, 'another host owns it') WHERE changes() = 0;
    INSERT INTO {TABLE} (seq, type, at, data, job, counts) VALUES ({_LAST} + 1, 'completed', NEW.ended, '{{}}', NEW.key,
        (SELECT json_set(counts, '$[1]', json_extract(counts, '$[1]') - 1, '$[3]', json_extract(counts, '$[3]') + 1)
            FROM {TABLE} ORDER BY seq DESC LIMIT 1));
END;
"""  # noqa: S608  (constants)
_START = f"""INSERT INTO jobs (id, instance, state, priority, submitted, started, attempt, charged, losses, due, request,
    deadline, owner, events) VALUES (?,?,'running',?,?,?,?,?,?,?,?,?,?,'{_MARK}')"""  # noqa: S608  (constants)
_COMPLETE = "INSERT INTO completions (key, owner, ended, result) VALUES (?,?,?,?)"
_PAUSE = 100
"""Commits before the next attempt, after one that a trigger refused: what it refused for lasts a while."""


class SingleCommits:
    """Commits of one job on one connection."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._has_triggers = False
        self._pause = 0

    def write(self, job: Values, events: Sequence[Event], host: int) -> Committed | None:
        """Write the start or the completion of a job. `None` if it is another commit, and nothing was written."""
        if self._pause:
            self._pause -= 1
            return None
        (
            was, key, job_id, instance, state, priority, submitted, started, ended, attempt, charged, losses,
            due, reason, cancelled, phase, request, result, error, once, deadline,
        ) = job  # fmt: skip
        if not (reason is cancelled is phase is error is once is None):
            return None
        told = [event[1:4] for event in events]
        if key is None:
            if state != "running" or told != [("submitted", submitted, {}), ("started", started, {})]:
                return None
            values = (
                job_id, instance, priority, submitted, started, attempt, charged, losses, due, request, deadline, host,
            )  # fmt: skip
            row = self._execute(_START, values)
            return None if row is None else Committed({job_id: row}, {}, None)
        if state != "completed" or was != "running" or told != [("completed", ended, {})]:
            return None
        row = self._execute(_COMPLETE, (key, host, ended, result))
        return None if row is None else Committed({}, {}, None)

    def _execute(self, statement: str, values: Values) -> int | None:
        if not self._has_triggers:
            self._database.read(lambda connection: connection.executescript(_TRIGGERS))
            self._has_triggers = True
        row = self._database.write_one(statement, values)
        if row is None:
            self._pause = _PAUSE
        return row
