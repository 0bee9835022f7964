"""Runs the `job` nodes of workflows on the job queue. The queue is imported when the first one runs.

A node's job carries the node's idempotency key, so a run that is resumed after a crash finds the job it had
submitted instead of submitting another.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from failwell.workflows.failure import Failure
from failwell.workflows.machine.messages import Request
from failwell.workflows.running.executor import Success, Tools

if TYPE_CHECKING:
    from asyncio import Future

    from failwell.jobs.job import Job, JobRequest
    from failwell.jobs.runtime import Runtime
    from failwell.workflows.job_client import JobClient
    from failwell.workflows.output_schemas import OutputSchemas


class JobExecutor:
    """An `Executor`: hosts the jobs of the store, or uses the process that does.

    Args:
        folder: The state folder.
        while_hosting: A context that is entered for as long as this process hosts the jobs.
        jobs: A runtime of this process that is running already. It is not stopped when a run ends.
    """

    def __init__(
        self,
        folder: Path,
        while_hosting: Callable[[], AbstractContextManager[None]] | None = None,
        *,
        jobs: "Runtime | None" = None,
    ) -> None:
        self._folder = folder
        self._jobs = jobs
        self._while_hosting = while_hosting
        self._opening: Future[Runtime | JobClient] | None = None
        self._schemas: OutputSchemas | None = None
        self._hosting = ExitStack()

    async def run(self, request: Request, tools: Tools) -> Success | Failure:  # noqa: ARG002  (a job needs nothing of the driver's)
        """Submit the job, wait for its end, and return the outcome."""
        from failwell.errors.fault import Fault
        from failwell.jobs.job import JobRequest

        job_request = JobRequest(
            instance=request.call["target"],
            arguments=request.call["arguments"],
            timeout=request.call["timeout"],
            key=request.key,
            run=request.run,
            actor=request.path,
            control={"idempotent": True} if request.node.idempotent else {},
        )
        try:
            job = await self._done(job_request)
        except Fault as fault:
            return Failure.from_exception(fault, typed=True)
        if job.state.value == "completed":
            return self._worked(request, _output(job))
        if job.error is not None:
            return Failure(report=job.error, typed=True)
        from failwell.errors.faults import CapabilityCancelledError

        return Failure.from_exception(CapabilityCancelledError(job_request.instance), typed=True)

    def _worked(self, request: Request, output: dict[str, Any]) -> Success | Failure:
        """The job completed; so did the node, if the result matches its output schema."""
        schema = request.node.output
        if schema is None:
            return Success(output=output)
        from failwell.workflows.envelope import violation
        from failwell.workflows.output_schemas import OutputSchemas, SchemaMismatch

        self._schemas = self._schemas or OutputSchemas()
        try:
            self._schemas.check(schema, output, {})
        except SchemaMismatch as error:
            extra = {} if error.field is None else {"failed_field": error.field}
            reason = str(error).replace("`stdout`", "the result")
            message, details = violation(request.node.name, "job", reason, **extra)
            failed = Failure.of("internal.schema_violation", message, details=details, typed=True)
            return replace(failed, output=output)
        return Success(output=output)

    async def _done(self, job_request: "JobRequest") -> "Job":
        from failwell.workflows.job_client import JobClient

        job: str | None = None
        while True:
            opening = await self.open()
            queue = opening.result()
            if not isinstance(queue, JobClient):
                return await _run_on_host(queue, job_request, job)
            job = job or await queue.submit(job_request)
            record = await _run_elsewhere(queue, job)
            if record is not None:
                return record
            # The host has ended. The first node to notice opens the queue again.
            if self._opening is opening:
                self._opening = None
                queue.close()

    async def open(self) -> "Future[Runtime | JobClient]":
        """The queue, once it is open; after a failure the next node tries again."""
        import asyncio

        opening = self._opening
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception() is not None)):
            opening = self._opening = asyncio.ensure_future(self._open())
        await asyncio.shield(opening)
        return opening

    async def _open(self) -> "Runtime | JobClient":
        if self._jobs is not None:
            return self._jobs
        from failwell.jobs.store.sqlite import is_hosted

        if is_hosted(self._folder):
            from failwell.workflows.job_client import JobClient

            return JobClient(self._folder)
        from failwell.jobs.runtime import Runtime

        runtime = await Runtime(self._folder).__aenter__()
        if self._while_hosting is not None:
            self._hosting.enter_context(self._while_hosting())
        return runtime

    async def close(self, run: str, *, grace: float = 2.0) -> object:  # noqa: ARG002  (its jobs have ended with their nodes)
        """The run has ended: stop the workers."""
        import asyncio

        opening, self._opening = self._opening, None
        if opening is None or self._jobs is not None:
            return None
        await asyncio.wait([opening])
        if opening.cancelled() or opening.exception() is not None:
            # The nodes that waited for it have failed already.
            return None
        from failwell.workflows.job_client import JobClient

        queue = opening.result()
        if isinstance(queue, JobClient):
            queue.close()
        else:
            await queue.__aexit__(None, None, None)
            self._hosting.close()
        return None


async def _run_on_host(queue: "Runtime", job_request: "JobRequest", job: str | None) -> "Job":
    """The job once it has ended. One that was submitted before this process became the host is not submitted again."""
    import asyncio

    job_id = job or (await _submitted(queue, job_request)).id
    try:
        return await queue.wait(job_id)
    except asyncio.CancelledError:
        queue.cancel(job_id)
        await queue.wait(job_id)
        raise


async def _submitted(queue: "Runtime", job_request: "JobRequest") -> "Job":
    """The job of a request. One that was stopped together with an earlier worker is submitted again."""
    job = await queue.submit_request(job_request)
    stops = 0
    while job.state.value == "cancelled":
        stops += 1
        job = await queue.submit_request(replace(job_request, key=f"{job_request.key}#{stops}"))
    return job


async def _run_elsewhere(queue: "JobClient", job: str) -> "Job | None":
    """The job once it has ended, or `None` when its host has gone."""
    import asyncio

    try:
        return await queue.wait(job)
    except asyncio.CancelledError:
        await queue.cancel(job)
        raise


def _output(job: "Job") -> dict[str, Any]:
    """What templates see: the fields of the result, or the result under `result`."""
    from json import loads

    from failwell.jobs.store.rows import result_to_json

    value: object = loads(result_to_json(job.result))
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {"result": value}
