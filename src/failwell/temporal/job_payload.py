"""A job request as the input of a workflow or an activity: the JSON that the local store keeps, and two fields more."""

import re
from collections.abc import Mapping
from dataclasses import replace
from json import loads
from typing import Any

from failwell.jobs.job import NO_TIMEOUT, JobRequest
from failwell.jobs.store.rows import request_from, request_to_json


def job_payload(request: JobRequest) -> dict[str, Any]:
    """A request as JSON. The idempotency key is not in it; the id of the workflow stands for it."""
    fields: dict[str, Any] = loads(request_to_json(replace(request, key=None)))
    if request.timeout == NO_TIMEOUT:
        # The local store keeps the seconds that apply, and nothing for no limit.
        fields["timeout"] = NO_TIMEOUT
    return {"instance": request.instance, "priority": request.priority, **fields}


def request_of(payload: Mapping[str, Any], key: str | None) -> JobRequest:
    """The request that `job_payload` wrote. Keys of newer versions are ignored."""
    return request_from(payload, payload["instance"], payload.get("priority", 0), key)


_JOB_ID = re.compile(r"[0-9a-f]{21}")


def is_job_id(text: str) -> bool:
    """Whether a text is a generated id and not an idempotency key."""
    return _JOB_ID.fullmatch(text) is not None
