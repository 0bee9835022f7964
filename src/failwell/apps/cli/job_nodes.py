"""Runs the `job` nodes of workflows on the queue. Nothing of the queue is loaded before the first one runs.

A node's job carries the node's own key, so a run that is taken up after a crash finds the job that it had
handed in instead of handing in another.
"""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from failwell.workflow.failure import Failure
from failwell.workflow.machine.protocol import Request
from failwell.workflow.run.executor import Success, Tools

if TYPE_CHECKING:
    from asyncio import Future

    from failwell.apps.cli.job_outside import Outside
    from failwell.jobs.job import Job, JobRequest
    from failwell.jobs.runtime import Runtime
    from failwell.workflow.run.result import Shapes


class JobNodes:
    """An `Executor`: becomes the host of the store's jobs, or asks the process that is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opening: Future[Runtime | Outside] | None = None
        self._shapes: Shapes | None = None
        self._warnings = ExitStack()

    async def run(self, request: Request, tools: Tools) -> Success | Failure:  # noqa: ARG002  (a job needs nothing of the driver's)
        """Hand in the job, wait for its end, and say what came of it."""
        from failwell.fault.base import Fault
        from failwell.jobs.job import JobRequest

        wanted = JobRequest(
            instance=request.call["target"],
            arguments=request.call["arguments"],
            timeout=request.call["timeout"],
            key=request.key,
            run=request.run,
            actor=request.path,
            control={"idempotent": True} if request.node.idempotent else {},
        )
        try:
            job = await self._done(wanted)
        except Fault as fault:
            return Failure.from_exception(fault, typed=True)
        if job.state.value == "completed":
            return self._worked(request, _output(job))
        if job.error is not None:
            return Failure(report=job.error, typed=True)
        from failwell.fault.capability import CapabilityCancelledError

        return Failure.from_exception(CapabilityCancelledError(wanted.instance), typed=True)

    def _worked(self, request: Request, output: dict[str, Any]) -> Success | Failure:
        """The job ended well; so did the node, if the result is what the author said it would be."""
        schema = request.node.output
        if schema is None:
            return Success(output=output)
        from failwell.workflow.envelope import violation
        from failwell.workflow.run.result import Broken, Shapes

        self._shapes = self._shapes or Shapes()
        try:
            self._shapes.check(schema, output, {})
        except Broken as error:
            more = {} if error.field is None else {"failed_field": error.field}
            reason = str(error).replace("`stdout`", "the result")
            message, details = violation(request.node.name, "job", reason, **more)
            failed = Failure.of("internal.schema_violation", message, details=details, typed=True)
            return replace(failed, output=output)
        return Success(output=output)

    async def _done(self, wanted: "JobRequest") -> "Job":
        from failwell.apps.cli.job_outside import Outside

        job: str | None = None
        while True:
            opening = await self.open()
            place = opening.result()
            if not isinstance(place, Outside):
                return await _run_here(place, wanted, job)
            job = job or await place.submit(wanted)
            ended = await _run_there(place, job)
            if ended is not None:
                return ended
            # Whoever ran the jobs has ended. The first of us to notice takes over, if nobody else was faster.
            if self._opening is opening:
                self._opening = None
                place.close()

    async def open(self) -> "Future[Runtime | Outside]":
        """Where jobs go, once that is found out; what could not be opened is tried anew by the next node."""
        import asyncio

        opening = self._opening
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception() is not None)):
            opening = self._opening = asyncio.ensure_future(self._open())
        await asyncio.shield(opening)
        return opening

    async def _open(self) -> "Runtime | Outside":
        from failwell.apps.cli.warning_lines import warnings_as_lines
        from failwell.jobs.faults import HostElsewhere
        from failwell.jobs.runtime import Runtime

        try:
            runtime = await Runtime(self._folder).__aenter__()
            self._warnings.enter_context(warnings_as_lines())
            return runtime
        except HostElsewhere:
            from failwell.apps.cli.job_outside import Outside

            return Outside(self._folder)

    async def close(self, run: str, *, grace: float = 2.0) -> object:  # noqa: ARG002  (its jobs have ended with their nodes)
        """The run is over: end the workers."""
        import asyncio

        opening, self._opening = self._opening, None
        if opening is None:
            return None
        await asyncio.wait([opening])
        if opening.cancelled() or opening.exception() is not None:
            # Its nodes were told.
            return None
        from failwell.apps.cli.job_outside import Outside

        place = opening.result()
        if isinstance(place, Outside):
            place.close()
        else:
            await place.__aexit__(None, None, None)
            self._warnings.close()
        return None


async def _run_here(place: "Runtime", wanted: "JobRequest", job: str | None) -> "Job":
    """The job once it is over; one that was handed in before this process ran the jobs is not handed in again."""
    import asyncio

    number = job or (await place.submit_request(wanted)).id
    try:
        return await place.wait(number)
    except asyncio.CancelledError:
        place.cancel(number)
        await place.wait(number)
        raise


async def _run_there(place: "Outside", job: str) -> "Job | None":
    """The job once it is over, or `None` when nobody runs it any more."""
    import asyncio

    try:
        return await place.over(job)
    except asyncio.CancelledError:
        await place.cancel(job)
        raise


def _output(job: "Job") -> dict[str, Any]:
    """What templates see: the result's own fields, or the result under `result`."""
    from json import loads

    from failwell.jobs.store.rows import kept_result

    value: object = loads(kept_result(job.result))
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {"result": value}
