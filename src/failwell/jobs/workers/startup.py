"""Starts a worker. A start has no time limit; it fails only if the worker shows no progress.

Signs of progress are what the capability reports (progress, output) and what it does (imported modules,
bytes read and written, processor time). A start of ten minutes that shows them is not interrupted. A worker gets a few
variables of the host's environment, and those its manifest names.
"""

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar, cast

from failwell.adapters.describe import attach_report, describe
from failwell.errors.axes import ActionKind
from failwell.errors.facts import UserAction
from failwell.errors.faults import CapabilityConfigError, CapabilityError, CapabilityResourceError
from failwell.errors.redact import register_secret
from failwell.errors.report import ErrorReport, Scene, TracebackPolicy
from failwell.jobs.faults import WorkerStalled, WorkerStartFailed
from failwell.jobs.manifest import Manifest
from failwell.jobs.platform import check_platform
from failwell.jobs.settings import config_hash
from failwell.jobs.workers.answer import raisable, read_report
from failwell.jobs.workers.death import failed_start, recorded_output
from failwell.jobs.workers.protocol import ProtocolMismatch, Supervision
from failwell.jobs.workers.worker_events import BUSY_SHARE
from failwell.processes.tree import cpu_seconds
from failwell.processes.wire import PROTOCOL
from failwell.processes.worker import Ending, WorkerProcess

ALWAYS = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TMPDIR", "TEMP", "TMP", "XDG_*",
    "LD_LIBRARY_PATH", "DYLD_*", "CUDA_*", "NVIDIA_*", "ROCR_*", "HIP_*", "XLA_*", "JAX_*", "OMP_NUM_THREADS",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
    "http_proxy", "https_proxy", "no_proxy", "SYSTEMROOT",
)  # fmt: skip
"""Host variables that every worker gets. Keys and tokens are not among them."""
SHORTEST_SECRET = 6
"""The shortest secret that is masked. A shorter one would occur in ordinary words."""
NEVER = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV")
"""They configure the host's interpreter, and the worker may use another one."""


def worker_environment(
    manifest: Manifest, host: Mapping[str, str], secrets: Mapping[str, str]
) -> dict[str, str]:
    """The environment variables of one worker.

    Raises:
        CapabilityConfigError: required variables have no value; each is named.
    """
    patterns = (*ALWAYS, *manifest.inherit)
    variables = {
        name: value
        for name, value in host.items()
        if name not in NEVER and any(fnmatchcase(name, pattern) for pattern in patterns)
    }
    missing: list[str] = []
    for variable in manifest.env:
        value = secrets.get(variable.name) if variable.secret else variable.value
        if value is None and not variable.secret:
            value = host.get(variable.name)
        if value is not None:
            variables[variable.name] = value
            if variable.secret and len(value) >= SHORTEST_SECRET:
                register_secret(value)
        elif variable.required:
            missing.append(variable.name)
    if missing:
        raise CapabilityConfigError(
            f"capability {manifest.name!r} needs {', '.join(f'`{name}`' for name in missing)};"
            f" set it with `failwell capabilities secret {manifest.name} {missing[0]}` or in the manifest's [env]",
            fields_invalid=missing,
        )
    if manifest.resources.gpu:
        # By default CUDA numbers cards by speed. NVML, and so the queue, numbers them by their place on the bus.
        variables.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    return variables


_T = TypeVar("_T")
BOOT = str(Path(__file__).parents[1] / "worker_process" / "boot.py")
_NO_HANDLE = frozenset({errno.EMFILE, errno.ENFILE})


class Startup:
    """Watches a worker during a long operation, and kills it if it shows no progress."""

    def __init__(
        self,
        manifest: Manifest,
        process: WorkerProcess,
        policy: TracebackPolicy,
        *,
        is_busy: Callable[[], bool] | None = None,
    ) -> None:
        """Create it; while `is_busy` returns true, the process need not show progress."""
        self._is_busy = is_busy
        self._loop = asyncio.get_running_loop()
        self._manifest = manifest
        self._process = process
        self._policy = policy
        self._last_sign = self._loop.time()
        self._hello: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        self._loaded: asyncio.Future[dict[str, Any]] = self._loop.create_future()

    def sign(self) -> None:
        """Record a sign of progress."""
        self._last_sign = self._loop.time()

    def on_frame(self, frame: dict[str, Any]) -> None:
        """Take in a `hello` or `loaded` frame."""
        self.sign()
        waiting = self._hello if frame["type"] == "hello" else self._loaded
        if not waiting.done():
            waiting.set_result(frame)

    async def spawn(self, env: Mapping[str, str]) -> None:
        """Start the interpreter and wait for its `hello` frame."""
        name, python = self._manifest.name, self._manifest.python
        check_platform(self._manifest)
        try:
            await self._process.start([python, BOOT], env, self._manifest.directory)
        except OSError as error:
            if error.errno in _NO_HANDLE:
                raise CapabilityResourceError(
                    f"the worker of capability {name!r} cannot be started: too many files are open",
                    kind="resource.file_handles",
                    details={"capability_name": name},
                ) from error
            folder = self._manifest.directory
            if error.filename == folder:
                raise WorkerStartFailed(
                    message=f"the folder {folder} of capability {name!r} does not exist; register the capability again from where it is now",
                    capability_name=name,
                ) from error
            raise WorkerStartFailed(
                message=f"the interpreter of capability {name!r} cannot be run: {python} ({error.strerror or error})",
                capability_name=name,
            ) from error
        greeting = await self.during("starting", self._hello)
        if greeting.get("protocol") != PROTOCOL:
            raise ProtocolMismatch(message=f"the worker of capability {name!r} uses another protocol version")

    async def load(self, order: dict[str, Any]) -> dict[str, Any]:
        """Import the capability in the worker; return what it reports about itself."""
        self._process.send(order)
        about = await self.during("being imported", self._loaded)
        if "error" in about:
            raise self._not_imported(about["error"])
        if not about.get("actions", True):
            name, target = self._manifest.name, self._manifest.object
            raise WorkerStartFailed(
                message=f"capability {name!r} has nothing to call: `{target}` must be a function,"
                " or a class or an instance with `execute` or other public methods",
                capability_name=name,
                user_action=UserAction(
                    ActionKind.FIX_CONFIGURATION, "correct `object` in its manifest, or give it such a method"
                ),
            )
        return about

    def _not_imported(self, error_data: Mapping[str, Any]) -> CapabilityError:
        name, target = self._manifest.name, self._manifest.object
        cause = read_report(error_data, Scene(capability=name), self._policy)
        return self._failed(f"imported from `{target.removesuffix(':*')}`", cause, raisable(cause))

    def _failed(self, doing: str, cause: ErrorReport, error: CapabilityError) -> WorkerStartFailed:
        """The fault of a start that the capability itself failed, with the stack of the worker."""
        name = self._manifest.name
        # The text of a foreign exception is for operators: it stays in the cause and in the stack.
        is_foreign = self._policy.keeps_message and not cause.caller_facing
        reason = cause.error_type if is_foreign else f"{cause.error_type}: {cause.message}"
        fault = WorkerStartFailed(
            message=f"capability {name!r} could not be {doing}: {reason}", capability_name=name
        )
        fault.__cause__ = error
        report = describe(fault, policy=self._policy)
        attach_report(fault, report if cause.internal is None else replace(report, internal=cause.internal))
        return fault

    async def initialize(self, work: Awaitable[_T]) -> _T:
        """Wait until the capability is initialised.

        Raises:
            Fault: the error of `initialize` if it names its cause: an argument, memory, a connection. Any other
                error becomes the cause of a failed start.
        """
        try:
            return await self.during("being initialised", work)
        except CapabilityError as fault:
            cause = describe(fault)
            # An error that the author raised on purpose names its cause, and a transient one may be retried.
            if cause.caller_facing or cause.category.job in ("resource", "transient"):
                raise
            raise self._failed("initialised", cause, fault) from fault

    async def during(self, doing: str, work: Awaitable[_T]) -> _T:
        """Wait for `work`, a part of the start, as long as there are signs of progress.

        Raises:
            WorkerStalled: there were none for too long; the process is being killed.
            Fault: the process died.
        """
        return await self._watched(doing, work, self._process.ended)

    async def later(self, doing: str, work: Awaitable[_T]) -> _T:
        """The same for a call to a ready process: if the process dies, the call itself fails."""
        return await self._watched(doing, work, None)

    async def _watched(
        self, doing: str, work: Awaitable[_T], end_of_process: "asyncio.Future[Ending] | None"
    ) -> _T:
        self.sign()
        task = asyncio.ensure_future(work)
        watch = asyncio.ensure_future(self._watch(doing))
        awaited = [task, watch] if end_of_process is None else [task, watch, end_of_process]
        try:
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            if watch.done():
                raise cast("BaseException", watch.exception())
            if (
                end_of_process is not None
                and end_of_process.done()
                and not (task.done() and task.exception() is None)
            ):
                raise failed_start(self._manifest, end_of_process.result(), self._policy)
            return task.result()
        finally:
            for future in (task, watch):
                if not future.done():
                    future.cancel()
                elif not future.cancelled():
                    future.exception()

    async def _watch(self, doing: str) -> None:
        limit = self._manifest.stall_after
        used = cpu_seconds(self._process.pid)
        while (remaining := self._last_sign + limit - self._loop.time()) > 0:
            pause = min(remaining, limit / 4)
            await asyncio.sleep(pause)
            # A worker whose code holds the interpreter lock has no pulse but uses the processor. A worker that waits
            # for its own child process shows progress by other signs.
            now = cpu_seconds(self._process.pid)
            if now - used > BUSY_SHARE * pause or (self._is_busy is not None and self._is_busy()):
                self.sign()
            used = now
        silence = self._loop.time() - self._last_sign
        self._process.kill("stalled")
        tail = recorded_output(self._process.stderr, self._policy)
        raise WorkerStalled(self._manifest.name, silence, doing, tail)

    def close(self) -> None:
        """Stop watching."""
        for waiting in (self._hello, self._loaded):
            waiting.cancel()


async def inspect_capability(
    manifest: Manifest,
    *,
    host: Mapping[str, str],
    secrets: Mapping[str, str],
    policy: TracebackPolicy | None = None,
) -> dict[str, Any]:
    """What the capability reports when it is imported: name, version, schema, actions, hooks.

    It is not initialised, and its process ends with this call. `policy` is that of `Supervision`.

    Raises:
        Fault: it cannot be imported, or its environment is not complete.
    """
    env = worker_environment(manifest, host, secrets)
    startups: list[Startup] = []

    def on_frame(frame: dict[str, Any]) -> None:
        if frame["type"] in ("hello", "loaded"):
            startups[0].on_frame(frame)
        elif frame["type"] != "pulse":
            startups[0].sign()

    process = WorkerProcess(on_frame, lambda _stream, _line: startups[0].sign())
    policy = Supervision(policy=policy).policy_for(manifest)
    startup = Startup(manifest, process, policy)
    startups.append(startup)
    try:
        await startup.spawn(env)
        return await startup.load(load_frame(manifest, pulse=0.25, policy=policy, folder=None))
    finally:
        startup.close()
        if process.is_started:
            process.kill("looked")
            await process.gone()


def load_frame(
    manifest: Manifest,
    *,
    pulse: float,
    policy: TracebackPolicy,
    folder: str | None,
    instance: str | None = None,
) -> dict[str, Any]:
    """The first frame to a worker."""
    return {
        "type": "load",
        "name": manifest.name,
        "instance": instance,
        "object": manifest.object,
        "path": [os.path.normpath(os.path.join(manifest.directory, entry)) for entry in manifest.path],
        "lanes": manifest.concurrency,
        "pulse": pulse,
        "policy": policy.value,
        "folder": folder,
    }


def manifest_differences(manifest: Manifest, about: Mapping[str, Any]) -> list[str]:
    """The differences between the manifest and the code, as messages."""
    differences: list[str] = []
    version = about.get("version")
    if manifest.version and version and manifest.version != version:
        differences.append(f"the manifest says version {manifest.version}, the code {version}")
    schema = about.get("schema")
    if manifest.config is not None and schema and config_hash(manifest.config) != config_hash(schema):
        differences.append(
            "the configuration schema of the manifest differs from the code's; the manifest's is used"
        )
    return differences
