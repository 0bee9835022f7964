"""The search attributes of runs: the kind and the category of the last failure.

A namespace must know them before a workflow can set them. They are added where this client may do that; elsewhere runs
work without them, and a hint names the command for an administrator.
"""

import logging
from typing import TYPE_CHECKING

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.service import RPCError, RPCStatusCode

if TYPE_CHECKING:
    from temporalio.client import Client

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
