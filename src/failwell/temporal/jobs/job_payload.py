"""A job request as the input of a workflow or an activity: the JSON that the local store keeps, and two fields more."""

import re
from collections.abc import Mapping
from dataclasses import replace
from json import dumps, loads
from typing import Any

from failwell.errors.faults import CapabilityInputError
from failwell.jobs.job import NO_TIMEOUT, JobRequest
from failwell.jobs.store.rows import request_from, request_to_json
from failwell.temporal.queues import LARGEST


def job_payload(request: JobRequest) -> dict[str, Any]:
    """A request as JSON. The idempotency key is not in it; the id of the workflow stands for it.

    Raises:
        CapabilityInputError: the server does not store that much.
    """
    fields: dict[str, Any] = loads(request_to_json(replace(request, key=None)))
    size = len(dumps(fields))
    if size > LARGEST:
        raise too_large("the arguments", request.instance, size)
    if request.timeout == NO_TIMEOUT:
        # The local store keeps the seconds that apply, and nothing for no limit.
        fields["timeout"] = NO_TIMEOUT
    return {"instance": request.instance, "priority": request.priority, **fields}


def too_large(what: str, instance: str, size: int) -> CapabilityInputError:
    """The fault for arguments or a result of a job that the server would refuse."""
    return CapabilityInputError(
        f"{what} of `{instance}` have {size:,} bytes, and Temporal stores {LARGEST:,};"
        " write them to a file or to storage, and pass its name",
        fields_invalid=["arguments"],
    )


def request_of(payload: Mapping[str, Any], key: str | None) -> JobRequest:
    """The request that `job_payload` wrote. Keys of newer versions are ignored.

    Raises:
        CapabilityInputError: it is no request.
    """
    try:
        return request_from(payload, payload["instance"], payload.get("priority", 0), key)
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise CapabilityInputError(
            "the input of the job cannot be read; submit it with `failwell.temporal.Client`",
            fields_invalid=["request"],
        ) from error


_JOB_ID = re.compile(r"[0-9a-f]{21}")


def is_job_id(text: str) -> bool:
    """Whether a text is a generated id and not an idempotency key."""
    return _JOB_ID.fullmatch(text) is not None
