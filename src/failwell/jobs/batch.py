"""Submits many jobs in one call, in a few large transactions, and as a group if they are to be followed together."""

import re
from collections.abc import Sequence
from dataclasses import replace
from time import time
from typing import NamedTuple

from failwell.errors.faults__capability import CapabilityInputError
from failwell.jobs.client.queue_client import QueueClient
from failwell.jobs.faults import UnknownGroup
from failwell.jobs.job import JobRequest, new_job_ids
from failwell.jobs.job__request import check_request, with_timeout
from failwell.jobs.manifest import Manifest
from failwell.jobs.store.groups import GroupPart, JobGroup
from failwell.jobs.store.rows import new_values
from failwell.store.event import Event

CHUNK = 2_000
"""Jobs in one transaction. Other processes write in between."""
_GROUP = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


class SubmittedBatch(NamedTuple):
    """What `submit_many` stored."""

    jobs: tuple[str, ...]
    """The id of the job of each request, in order. A request with a key that is taken has the id of the earlier job."""
    new: int
    """How many of them are new."""
    group: str | None


def submit_many(
    queue: QueueClient,
    requests: Sequence[JobRequest],
    *,
    group: str | None = None,
    callback: JobRequest | None = None,
) -> SubmittedBatch:
    """Submit many jobs. All of them are checked before the first one is stored.

    Args:
        queue: The queue.
        requests: The jobs.
        group: The id of a new group that the jobs belong to. A group whose submission was interrupted is continued.
        callback: A job that is submitted once, when the last job of the group has ended. Its argument `group` has
            the counts by status and the ids of failed jobs.

    Raises:
        CapabilityInputError: a request is not valid, or the group is complete already; the message says which.
        CapabilityNotLoadedError: a capability is not registered. See `QueueClient.submit` for the others.
    """
    requests, callback = _checked(queue, requests, group, callback)
    ids: list[str] = []
    new = 0
    starts = range(0, len(requests), CHUNK) if requests or group is None else (0,)
    for start in starts:
        now = time()
        chunk = requests[start : start + CHUNK]
        jobs = new_job_ids(len(chunk))
        is_last = start + CHUNK >= len(requests)
        part = None if group is None else GroupPart(group, callback, is_last)
        commit = queue.store.commit(
            [new_values(job, request, now) for job, request in zip(jobs, chunk, strict=True)],
            [Event(0, "submitted", now, {}, job) for job in jobs],
            group=part,
        )
        queue.store.wake_host()
        ids += [commit.twins.get(job, job) for job in jobs]
        new += len(commit.keys)
    return SubmittedBatch(tuple(ids), new, group)


def find_group(queue: QueueClient, group: str) -> JobGroup:
    """The group with this id.

    Raises:
        UnknownGroup: it does not exist.
    """
    groups = queue.store.groups(group)
    if not groups:
        raise UnknownGroup(group=group)
    return groups[0]


def _checked(
    queue: QueueClient, requests: Sequence[JobRequest], group: str | None, callback: JobRequest | None
) -> tuple[list[JobRequest], JobRequest | None]:
    """The requests and the callback as they are stored."""
    checker = RequestChecker(queue)
    if group is not None and _GROUP.fullmatch(group) is None:
        raise CapabilityInputError(
            "`group` must be 1 to 128 letters, digits, `_`, `-`, `.` and `:`", fields_invalid=["group"]
        )
    if callback is not None:
        if group is None:
            raise CapabilityInputError(
                "`callback` follows the end of a group, and there is no `group`", fields_invalid=["callback"]
            )
        if callback.key is not None or "group" in callback.arguments:
            raise CapabilityInputError(
                "`callback` gets its key and its argument `group` from the group", fields_invalid=["callback"]
            )
        # The group adds its argument when it submits the callback.
        complete = checker.check(replace(callback, arguments={**callback.arguments, "group": {}}))
        callback = replace(complete, arguments=callback.arguments)
    checked: list[JobRequest] = []
    for number, request in enumerate(requests):
        try:
            checked.append(checker.check(request))
        except CapabilityInputError as error:
            raise CapabilityInputError(
                f"request {number + 1} of {len(requests)}: {error}; no job was submitted",
                fields_invalid=[f"requests[{number}].{field}" for field in error.fields_invalid or ()],
            ) from error
    return checked, callback


class RequestChecker:
    """Checks many requests; each instance is looked up once."""

    def __init__(self, queue: QueueClient) -> None:
        self._queue = queue
        self._manifests: dict[str, Manifest] = {}

    def check(self, request: JobRequest) -> JobRequest:
        """The request as it is stored; raises the faults of `QueueClient.submit`."""
        check_request(request)
        manifest = self._manifests.get(request.instance)
        if manifest is None:
            manifest = self._manifests[request.instance] = self._queue.check_instance(request.instance)
        self._queue.argument_check(manifest).check(request)
        return with_timeout(request, manifest)
