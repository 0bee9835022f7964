"""A run on a Temporal server, seen from a client: its events, its output, answers and cancellation.

Events are read by a query, from the execution that has them: a run that was continued as new has several. The
history tells when there is something new.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from temporalio.api.enums.v1 import EventType, IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import (
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from failwell.errors.axes import ActionKind
from failwell.errors.facts import UserAction
from failwell.errors.fault import Fault
from failwell.temporal.runs.plan_json import unpack
from failwell.temporal.runs.run_workflow import NAME

if TYPE_CHECKING:
    from temporalio.client import Client, WorkflowHandle

    from failwell.store.event import Fact

_PAUSE = 0.1
"""Seconds between two looks at the events of a run."""
_QUERY_TIMEOUT = timedelta(seconds=10)
RECONNECT = 0.5
"""Seconds between two tries to reach the server."""
_OUTAGES = frozenset(
    {
        RPCStatusCode.UNAVAILABLE,
        RPCStatusCode.UNKNOWN,
        RPCStatusCode.CANCELLED,
        RPCStatusCode.DEADLINE_EXCEEDED,
        RPCStatusCode.RESOURCE_EXHAUSTED,
    }
)
_ENDED = frozenset(
    {
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT,
    }
)


class NoWorker(Fault, kind="provider.unavailable"):
    """No worker answers for a run."""

    task_queue: str


class Ended(Fault, kind="session.no_snapshot"):
    """The server has ended a run, for example because somebody terminated it."""

    run: str
    status: str


def no_worker(task_queue: str, error: Exception | None = None) -> NoWorker:
    """The fault for a run that no worker takes."""
    fault = NoWorker(
        message=f"no worker takes tasks of the queue `{task_queue}`",
        task_queue=task_queue,
        caller_facing=True,
        user_action=UserAction(
            ActionKind.FIX_CONFIGURATION,
            f"start one: failwell temporal worker --task-queue {task_queue}",
        ),
    )
    fault.__cause__ = error
    return fault


def ended_by_server(run: str, status: str) -> Ended:
    """The fault for a run that ended without its own last event."""
    return Ended(
        message=f"the server has ended run `{run}` ({status}) before the run could end itself",
        run=run,
        status=status,
        caller_facing=True,
        user_action=UserAction(ActionKind.RESUBMIT, f"start it where it stopped: failwell resume {run}"),
    )


class RemoteRun:
    """One run on a server."""

    def __init__(self, client: "Client", run: str, task_queue: str) -> None:
        self._client = client
        self.run = run
        self.task_queue = task_queue

    def workflow_handle(self, execution: str | None = None) -> "WorkflowHandle[Any, Any]":
        """The newest execution of the run, or the one named."""
        return self._client.get_workflow_handle(self.run, run_id=execution)

    async def status(self) -> str | None:
        """What the server says of the run: `running`, `completed`, `terminated`, …; `None` if it does not have it."""
        try:
            description = await self.workflow_handle().describe()
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                return None
            raise
        if description.workflow_type != NAME or description.status is None:
            return None
        return description.status.name.lower()

    async def facts(self, after: int) -> "tuple[list[Fact], list[dict[str, Any]]]":
        """The next page of events above number `after`, and what agents logged before them; empty if there are none yet.

        Raises:
            NoWorker: no worker answers.
        """
        execution: str | None = None
        while True:
            page = await self._query("events", after, execution)
            if page["first"] <= after + 1 or page["previous"] is None:
                facts = [(kind, at, data) for _, kind, at, data in unpack(page["events"])]
                return facts, unpack(page["lines"]) if "lines" in page else []
            execution = page["previous"]

    async def state(self) -> dict[str, Any]:
        """Where the run is."""
        return await self._query("state", None, None)

    async def origin(self) -> dict[str, Any]:
        """The workflow, the files and the start of the run."""
        return await self._query("origin", None, None)

    async def answer(self, reply: Mapping[str, Any]) -> str | None:
        """Answer a gate. Returns why the answer was refused, or `None`."""
        try:
            handle: Any = self.workflow_handle()
            await handle.execute_update("answer", dict(reply), rpc_timeout=_QUERY_TIMEOUT)
        except WorkflowUpdateFailedError as error:
            cause = error.cause
            return cause.message if isinstance(cause, ApplicationError) else str(cause)
        except WorkflowUpdateRPCTimeoutOrCancelledError as error:
            raise no_worker(self.task_queue, error) from error
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                return f"run `{self.run}` has ended"
            raise
        return None

    async def cancel(self, reason: str, by: str) -> None:
        """Ask the server to cancel the run."""
        try:
            await self.workflow_handle().cancel(reason=f"{reason}\n{by}")
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:
                raise

    async def changes(self) -> AsyncGenerator[None]:
        """Yield each time the history has grown, up to the end of the run."""
        execution: str | None = None
        while True:
            description = await self.workflow_handle(execution).describe()
            pages = self.workflow_handle(description.run_id).fetch_history_events(wait_new_event=True)
            execution = None
            while True:
                await pages.fetch_next_page()
                page = pages.current_page or ()
                if page:
                    yield
                for event in page:
                    if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
                        continued = event.workflow_execution_continued_as_new_event_attributes
                        execution = continued.new_execution_run_id
                if pages.next_page_token is None or any(event.event_type in _ENDED for event in page):
                    break
            if execution is None:
                return

    async def has_worker(self) -> bool:
        """Whether a worker takes tasks of the queue."""
        from temporalio.api.enums.v1 import TaskQueueType
        from temporalio.api.taskqueue.v1 import TaskQueue
        from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest

        reply = await self._client.workflow_service.describe_task_queue(
            DescribeTaskQueueRequest(
                namespace=self._client.namespace,
                task_queue=TaskQueue(name=self.task_queue),
                task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
            )
        )
        return bool(reply.pollers)

    async def _query(self, name: str, argument: Any, execution: str | None) -> Any:
        arguments = [] if argument is None else [argument]
        try:
            return await self.workflow_handle(execution).query(
                name, args=arguments, rpc_timeout=_QUERY_TIMEOUT
            )
        except RPCError as error:
            if error.status in (
                RPCStatusCode.DEADLINE_EXCEEDED,
                RPCStatusCode.CANCELLED,
                RPCStatusCode.FAILED_PRECONDITION,
            ):
                raise no_worker(self.task_queue, error) from error
            raise


def server_fault(error: RPCError, namespace: str) -> Fault:
    """The fault for a request that the server refuses."""
    status, name = error.status, error.status.name.lower()
    if status in (RPCStatusCode.UNAUTHENTICATED, RPCStatusCode.PERMISSION_DENIED):
        kind, message = "provider.auth", f"the server refuses this client in the namespace `{namespace}`"
        advice = "check TEMPORAL_API_KEY and the certificate, and what they may do in the namespace"
    elif is_outage(error):
        kind, message = "provider.unavailable", f"the server does not answer ({name})"
        advice = "try again when it does"
    else:
        kind, message = "provider.bad_request", f"the server refuses the run ({name})"
        advice = "run it again with `--traceback`, which shows the answer of the server"
    action = UserAction(ActionKind.FIX_CONFIGURATION, advice)
    fault = Fault(kind=kind, message=message, user_action=action, caller_facing=True)
    fault.__cause__ = error
    return fault


def is_outage(error: RPCError) -> bool:
    """Whether the server could not be reached for a moment, as while it restarts."""
    return error.status in _OUTAGES


async def follow(remote: RemoteRun, wake: asyncio.Event) -> None:
    """Set `wake` when the history of a run has grown, until the run has ended. An outage is waited out.

    Reading the events of a run takes the time of its worker and of the server, so changes in quick succession are one.
    """
    while True:
        try:
            async for _ in remote.changes():
                wake.set()
                await asyncio.sleep(_PAUSE)
        except RPCError as error:
            if not is_outage(error):
                raise
            await asyncio.sleep(RECONNECT)
        else:
            return


_LOG = logging.getLogger("failwell.temporal")
NAMES = ("FailwellKind", "FailwellCategory")


async def ensure_search_attributes(client: "Client") -> bool:
    """Whether runs can set the search attributes; they are added if they are missing."""
    operator, namespace = client.operator_service, client.namespace
    try:
        known = await operator.list_search_attributes(ListSearchAttributesRequest(namespace=namespace))
        missing = [name for name in NAMES if name not in known.custom_attributes]
        if missing:
            keyword = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
            await operator.add_search_attributes(
                AddSearchAttributesRequest(
                    namespace=namespace, search_attributes=dict.fromkeys(missing, keyword)
                )
            )
    except RPCError as error:
        if error.status == RPCStatusCode.ALREADY_EXISTS:
            return True
        options = " ".join(f"--name {name} --type Keyword" for name in NAMES)
        _LOG.warning(
            "runs cannot be found by kind and category in the namespace `%s`. An administrator adds them with:"
            " temporal operator search-attribute create --namespace %s %s",
            namespace,
            namespace,
            options,
        )
        return False
    return True
