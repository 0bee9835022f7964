"""Runs script nodes: a command, its typed error file, its output, and its end.

A non-zero exit is an ordinary result unless the author asked for typed failures. Nothing is inferred
from exit codes or from output: only the error file describes a failure.
"""

import os
from codecs import getincrementaldecoder
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from errno import ENOTSUP
from pathlib import Path
from stat import S_ISREG
from typing import Any, cast

from failwell.processes.capture import LIMIT, Capture, OutputSecrets
from failwell.processes.run_processes import RunProcesses
from failwell.processes.script import ScriptProcess, unbroken
from failwell.processes.tree import MARKER
from failwell.workflows.envelope import LARGEST, Malformed, parse, read_file
from failwell.workflows.failure import Failure
from failwell.workflows.machine.messages import Request
from failwell.workflows.output_schemas import OutputSchemas
from failwell.workflows.running.executor import Success, Tools
from failwell.workflows.running.script_result import Outcome, output_of

_MARKER = MARKER.encode()


def script_environment(
    author: Mapping[str, str],
    *,
    mark: str,
    error_out: str,
    usage_out: str,
    attempt: int,
    key: str,
    run: str,
) -> dict[bytes, bytes]:
    """One script's environment. `attempt` counts from 1; the variable for it counts from 0."""
    error_path, retries = os.fsencode(error_out), str(attempt - 1).encode()
    environment = dict(os.environb)
    # Marks are inherited, so that an outer run finds the processes of an inner one.
    outer = environment.get(_MARKER)
    # UTF-8 instead of a legacy code page; an author can override it.
    environment[b"PYTHONUTF8"] = b"1"
    # What a script in Python prints is seen when it prints it, not when a buffer is full.
    environment.setdefault(b"PYTHONUNBUFFERED", b"1")
    for name, value in author.items():
        environment[os.fsencode(name)] = os.fsencode(value)
    # These belong to one execution and override the values of an outer run or of the author.
    environment.update(
        {
            b"FAILWELL_ERROR_OUT": error_path,
            b"CONDUCTOR_ERROR_OUT": error_path,
            b"FAILWELL_USAGE_OUT": os.fsencode(usage_out),
            b"FAILWELL_RETRY_ATTEMPT": retries,
            b"CONDUCTOR_RETRY_ATTEMPT": retries,
            b"FAILWELL_IDEMPOTENCY_KEY": os.fsencode(key),
            b"FAILWELL_RUN_ID": os.fsencode(run),
            _MARKER: outer + b":" + mark.encode() if outer else mark.encode(),
        }
    )
    return environment


_NUMBERS = ("cost_usd", "input_tokens", "output_tokens")


class ScriptExecutor:
    """Runs the scripts of this process's runs. Call `close` for each run that has ended."""

    def __init__(self) -> None:
        self._processes: dict[str, RunProcesses] = {}
        self._schemas = OutputSchemas()
        self._secrets = OutputSecrets()

    async def run(self, request: Request, tools: Tools) -> Success | Failure:
        """Run one script. A cancellation stops it with everything that it started, and is then re-raised."""
        try:
            processes = self._processes_of(request.run, tools.run_folder)
            name = processes.next_name()
        except OSError as error:
            return Outcome(request, tools.plan, self._schemas).not_started(error)
        script = _Script(name, request, tools, processes, self._schemas, self._secrets)
        try:
            return await script.run()
        finally:
            script.clean()

    async def close(self, run: str, *, grace: float = 2.0) -> set[int]:
        """Stop what the scripts of an ended run left running. Returns the processes that did not end."""
        processes = self._processes.pop(run, None)
        return set() if processes is None else await unbroken(processes.close(grace))

    def _processes_of(self, run: str, folder: Path) -> RunProcesses:
        processes = self._processes.get(run)
        if processes is None:
            if os.name != "posix":
                raise OSError(ENOTSUP, "scripts can be run on POSIX systems only")
            processes = self._processes[run] = RunProcesses(folder)
        return processes


class _Script(Outcome):
    """One execution of one script."""

    def __init__(
        self,
        name: str,
        request: Request,
        tools: Tools,
        processes: RunProcesses,
        schemas: OutputSchemas,
        secrets: OutputSecrets,
    ) -> None:
        super().__init__(request, tools.plan, schemas)
        self._tools, self._processes, self._secrets = tools, processes, secrets
        self._name = name
        self._error = f"{processes.scratch}/{name}.error.json"
        self._usage = f"{processes.scratch}/{name}.usage.json"
        self._is_tidy = True
        self._timeout: float | None = request.call.get("timeout")

    async def run(self) -> Success | Failure:
        call = self._request.call
        env: dict[str, str] = dict(call.get("env") or {})
        secret: Mapping[str, str] = call.get("env_from") or {}
        for variable, reference in secret.items():
            env[variable] = self._tools.secret(reference)
            self._secrets.add(env[variable])
        environment = self._environment(env)
        out, err = self._captures()
        try:
            process = ScriptProcess(
                [call["command"], *call.get("args", ())],
                env=environment,
                mark=self._name,
                out=out,
                err=err,
                cwd=call.get("working_dir"),
                stdin=call.get("stdin"),
            )
        except (OSError, ValueError) as error:
            out.close()
            err.close()
            return self.not_started(error)
        self._processes.watch(process)
        has_ended = False
        code: int | None = None
        survivors: set[int] = set()
        # A script that is killed may have been writing.
        self._is_tidy = False
        try:
            has_ended = await process.ended(self._timeout)
        finally:
            if has_ended:
                code = self._processes.ended(process, self._name)
            else:
                # Timed out, cancelled, interrupted or failed: the script never outlives this call.
                survivors = await unbroken(self._stop(process))
            out.close()
            err.close()
        self._is_tidy = code == 0
        stdout, stderr, stderr_end = out.text(), err.text(), err.end(4_000)
        output = output_of(stdout, stderr, code, out.file, err.file)
        return self._result(output, out, stderr_end, code, survivors)

    def clean(self) -> None:
        """Delete the script's files, except for spilled output."""
        if not self._is_tidy:
            self._processes.clean(self._name)

    async def _stop(self, process: ScriptProcess) -> set[int]:
        survivors = await process.stop(self._tools.grace)
        self._processes.stopped(process)
        return survivors

    def _result(
        self, output: dict[str, Any], out: Capture, stderr_end: str, code: int | None, survivors: set[int]
    ) -> Success | Failure:
        raised: Failure | Malformed | None
        try:
            raised = read_file(
                _take_file(self._error), datetime.now(UTC), kinds=self._tools.plan.kinds, scene=self.scene
            )
        except Malformed as error:
            raised = error
        usage = self._read_usage()
        if code is None:
            return self.timed_out(self._timeout or 0.0, output, raised, survivors, usage)
        return self.ended(code, output, raised, stderr_end, out, usage)

    def _environment(self, author: dict[str, str]) -> dict[bytes, bytes]:
        request = self._request
        return script_environment(
            author,
            mark=self._name,
            error_out=self._error,
            usage_out=self._usage,
            attempt=request.attempt,
            key=request.key,
            run=request.run,
        )

    def _captures(self) -> tuple[Capture, Capture]:
        """The readers of stdout and stderr."""
        request = self._request
        limit = request.call.get("output_limit")
        limit = LIMIT if limit is None else limit
        stem = (
            f"{self._processes.run_folder}/spill/{file_name(request.path)}.{request.visit}.{request.attempt}"
        )
        on_chunk, on_cut = self._listeners("stdout")
        on_error_chunk, on_error_cut = self._listeners("stderr")
        secrets = self._secrets
        return (
            Capture(f"{stem}.stdout", limit=limit, secrets=secrets, on_chunk=on_chunk, on_cut=on_cut),
            Capture(
                f"{stem}.stderr", limit=limit, secrets=secrets, on_chunk=on_error_chunk, on_cut=on_error_cut
            ),
        )

    def _listeners(
        self, stream: str
    ) -> tuple[Callable[[bytes], None] | None, Callable[[Capture], None] | None]:
        """What notes the output of one stream as it comes, and that the rest of it goes to a file."""
        note = self._tools.note
        if note is None:
            return None, None
        request = self._request
        about: dict[str, Any] = {
            "path": request.path,
            "node": request.node.name,
            "stream": stream,
            "visit": request.visit,
            "attempt": request.attempt,
        }
        if request.item is not None:
            about["item"] = request.item
        # A character may be split between two chunks.
        decoder = getincrementaldecoder("utf-8")("replace")

        def on_chunk(chunk: bytes) -> None:
            note("node:printed", {**about, "text": decoder.decode(chunk)})

        def on_cut(capture: Capture) -> None:
            file = capture.file
            rest = {"file": Path(file).name} if file and not capture.trouble else {"reason": capture.trouble}
            note("node:cut", {**about, "cut": capture.size, **rest})

        return on_chunk, on_cut

    def _read_usage(self) -> dict[str, Any] | None:
        try:
            raw = _take_file(self._usage)
            usage = parse(raw) if raw.strip() else None
        except Malformed as error:
            if self._tools.note is not None:
                self._tools.note("node:usage_ignored", {"path": self._request.path, "reason": str(error)})
            return None
        return _usage(cast("dict[str, Any]", usage)) if isinstance(usage, dict) else None


def file_name(path: str) -> str:
    """A file name for a task's path, unique for each path."""
    if path.isascii() and path.isidentifier():
        return path
    from urllib.parse import quote

    name = quote(path, safe="[]")
    if len(name) <= 150:
        return name
    from hashlib import blake2b

    return f"{name[:100]}%{blake2b(path.encode(), digest_size=8).hexdigest()}"


def _usage(content: dict[str, Any]) -> dict[str, Any] | None:
    """The valid figures of a usage file; `None` if there are none."""
    usage: dict[str, Any] = {}
    for name in _NUMBERS:
        figure = content.get(name)
        if isinstance(figure, int | float) and not isinstance(figure, bool) and 0 <= figure < 1e15:
            usage[name] = figure
    if isinstance(content.get("model"), str):
        usage["model"] = content["model"][:200]
    return usage or None


def _take_file(path: str) -> bytes:
    """Read and delete a file that a script wrote. Anything but an ordinary file is refused.

    Raises:
        Malformed: it is not an ordinary file, or cannot be read.
    """
    try:
        # These flags prevent blocking on a pipe and following a link.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    except OSError as error:
        _remove(path)
        raise Malformed(f"the error file cannot be read: {(error.strerror or 'no reason').lower()}") from None
    try:
        if not S_ISREG(os.fstat(file).st_mode):
            raise Malformed("the error file is not an ordinary file")
        return os.read(file, LARGEST + 1)
    finally:
        os.close(file)
        _remove(path)


def _remove(path: str) -> None:
    try:
        os.unlink(path)  # noqa: PTH108  (`pathlib` would double the cost for every script)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):
        from shutil import rmtree

        rmtree(path, ignore_errors=True)
