"""The error codes of Redis, MongoDB and Elasticsearch.

Redis: the prefixes in its source (`server.c`, `cluster.c`, `acl.c`) and in "Redis serialization protocol
specification". MongoDB: `error_codes.yml`, and the specifications "Retryable Writes" and "Transactions" for
labels. Elasticsearch and OpenSearch: the names under `error.type`, after the classes of their servers.
"""

from collections.abc import Iterable

_DOWN, _BUSY, _UNSURE = "provider.unavailable", "tool.busy", "provider.outcome_unknown"
_BAD, _REJECTED, _OVER = "provider.bad_request", "provider.rejected", "provider.overloaded"
_AUTH, _PERMISSION, _CONNECTION = "provider.auth", "provider.permission", "provider.connection"
_RATE, _TIMEOUT, _CORRUPT = "provider.rate_limited", "provider.timeout", "session.store_corrupt"
_DISK, _MEMORY, _LONG = "resource.disk", "resource.system_memory", "provider.context_too_long"

REDIS_PREFIXES: dict[str, str] = {
    "OOM": _MEMORY,
    "NOAUTH": _AUTH, "WRONGPASS": _AUTH,
    "NOPERM": _PERMISSION, "DENIED": _PERMISSION,
    "LOADING": _DOWN, "BUSY": _DOWN, "MASTERDOWN": _DOWN, "CLUSTERDOWN": _DOWN, "NOREPLICAS": _DOWN,
    "NOGOODSLAVE": _DOWN, "UNBLOCKED": _DOWN, "FAILOVER": _DOWN,
    "TRYAGAIN": _BUSY, "INPROG": _BUSY,
    # The server is there and answers; this is not the one to send the command to, or an operator must act.
    "READONLY": _REJECTED, "MOVED": _REJECTED, "ASK": _REJECTED, "MISCONF": _REJECTED, "NOPROTO": _REJECTED,
    "NOMASTERLINK": _REJECTED,
    "WRONGTYPE": _BAD, "CROSSSLOT": _BAD, "NOSCRIPT": _BAD, "EXECABORT": _BAD, "BUSYKEY": _BAD, "BUSYGROUP": _BAD,
    "NOGROUP": _BAD, "NOTBUSY": _BAD, "ERR": _BAD, "WRONGARGS": _BAD, "SYNTAX": _BAD,
    "UNKILLABLE": _BUSY, "IOERR": _DOWN,
}  # fmt: skip
_REDIS_GENERAL: tuple[tuple[str, str], ...] = (
    ("max number of clients", _OVER),
    ("unknown command", _REJECTED),
    ("unknown subcommand", _REJECTED),
    ("invalid password", _AUTH),
    ("without any password configured", _AUTH),
    ("client sent auth", _AUTH),
    ("db index is out of range", _REJECTED),
    ("operation not permitted", _AUTH),
)
"""What follows `ERR`, Redis's general prefix, where it is more than a command that was written wrongly."""


def kind_of_redis(text: str) -> str | None:
    """The kind for an error reply of Redis, which begins with its code: `OOM command not allowed …`."""
    prefix = text.removeprefix("-").partition(" ")[0]
    kind = REDIS_PREFIXES.get(prefix)
    if kind is not None and prefix != "ERR":
        return kind
    # Clients leave the general prefix out.
    low = text[:200].lower()
    return next((meaning for words, meaning in _REDIS_GENERAL if words in low), kind)


def is_redis_prefix(word: str) -> bool:
    """Whether an error reply of Redis may begin with `word`."""
    return word in REDIS_PREFIXES


_MONGO_LABELS: dict[str, str] = {
    "SystemOverloadedError": _OVER,
    "TransientTransactionError": _BUSY,
    "UnknownTransactionCommitResult": _UNSURE,
    "NoWritesPerformed": _DOWN,
    "RetryableWriteError": _DOWN,
    "RetryableError": _DOWN,
}
_MONGO: dict[str, tuple[int, ...]] = {
    # Another server is, or becomes, the primary. The driver's specification allows one repeat.
    _DOWN: (91, 133, 134, 189, 234, 317, 10058, 10107, 11600, 11602, 13435, 13436, 63, 150, 13388, 358, 384),
    _CONNECTION: (6, 7),
    _UNSURE: (64, 74, 89, 9001, 50915),
    _TIMEOUT: (50, 262, 290),
    _BUSY: (24, 46, 112, 117, 202, 225, 244, 246, 251, 267, 314),
    _BAD: (
        2, 4, 5, 9, 14, 15, 16, 17, 20, 22, 27, 28, 31, 34, 40, 48, 51, 52, 53, 54, 55, 56, 57, 59, 61, 62, 66, 67, 68,
        72, 73, 76, 77, 79, 80, 82, 83, 85, 86, 87, 93, 96, 115, 121, 146, 197, 241, 263, 292, 303, 11000, 11001,
        12582, 16837, 17276, 17280, 31249, 40323, 40324, 40415,
    ),
    _REJECTED: (26, 60, 70, 71, 94, 166, 304, 305, 8000),
    _AUTH: (11, 18, 33, 334, 391),
    _PERMISSION: (13,),
    _DISK: (14031,),
    _MEMORY: (39,),
    _LONG: (10334, 17420),
    "provider.stream_interrupted": (43, 136, 237, 286),
    "cancel.run": (11601,),
    _RATE: (462, 16500),  # 16500 is how Azure Cosmos DB, which speaks this protocol, says it
    _CORRUPT: (206, 295),
}  # fmt: skip
MONGODB_CODES = {number: kind for kind, numbers in _MONGO.items() for number in numbers}


def kind_of_mongodb(code: int | None, labels: Iterable[str] = ()) -> str | None:
    """The kind for an error code of MongoDB and the labels beside it. A code says more than a label."""
    kind = None if code is None else MONGODB_CODES.get(code)
    if kind is not None:
        return kind
    present = frozenset(labels)
    return next((kind for label, kind in _MONGO_LABELS.items() if label in present), None)


_ELASTIC_NAMES: dict[str, str] = {
    _OVER: """
        circuit_breaking_exception es_rejected_execution_exception rejected_execution_exception
        too_many_requests_exception search_backpressure_exception
    """,
    _DOWN: """
        no_shard_available_action_exception unavailable_shards_exception master_not_discovered_exception
        node_not_connected_exception node_disconnected_exception node_closed_exception no_node_available_exception
        cluster_manager_not_discovered_exception not_master_exception process_cluster_event_timeout_exception
        node_not_available_exception index_shard_not_started_exception index_shard_recovering_exception
        search_context_missing_exception health_status_exception index_closed_engine_exception
        engine_closed_exception shard_not_found_exception primary_shard_unavailable_exception
    """,
    _BUSY: """
        version_conflict_engine_exception concurrent_snapshot_execution_exception snapshot_in_progress_exception
        index_creation_in_progress_exception
    """,
    _TIMEOUT: """
        search_timeout_exception
    """,
    _UNSURE: """
        timeout_exception receive_timeout_transport_exception elasticsearch_timeout_exception
    """,
    _BAD: """
        resource_not_found_exception mapper_parsing_exception parsing_exception
        document_parsing_exception strict_dynamic_mapping_exception illegal_argument_exception query_shard_exception
        number_format_exception x_content_parse_exception json_parse_exception action_request_validation_exception
        resource_already_exists_exception index_already_exists_exception document_missing_exception
        invalid_index_name_exception invalid_alias_name_exception parse_exception script_exception too_many_clauses
        too_many_buckets_exception json_e_o_f_exception media_type_header_exception class_cast_exception
        input_coercion_exception named_object_not_found_exception type_missing_exception
        verification_exception sql_illegal_argument_exception snapshot_missing_exception date_time_parse_exception
    """,
    _AUTH: """
        authentication_processing_error invalid_token_exception
    """,
    _PERMISSION: """
        authorization_exception license_compliance_exception
    """,
    _REJECTED: """
        index_closed_exception invalid_index_template_exception index_not_found_exception aliases_not_found_exception
        index_template_missing_exception repository_missing_exception
    """,
    _LONG: """
        content_too_long_exception
    """,
    _CORRUPT: """
        corrupt_index_exception index_format_too_old_exception translog_corrupted_exception
    """,
    "cancel.run": """
        task_cancelled_exception
    """,
}
"""Kind → error types. An index that is missing has to be made by somebody; a document that is missing is the caller's."""
ELASTICSEARCH_TYPES = {name: kind for kind, names in _ELASTIC_NAMES.items() for name in names.split()}


def kind_of_elasticsearch(name: str | None, reason: str = "") -> str | None:
    """The kind for an error type of Elasticsearch or OpenSearch. Two types say why only in their reason."""
    if name == "cluster_block_exception":
        low = reason[:500].lower()
        if "disk usage exceeded" in low or "flood-stage" in low:
            return _DISK
        return _DOWN if "service_unavailable" in low else _REJECTED
    if name == "security_exception":
        return _AUTH if "authenticat" in reason[:500].lower() else _PERMISSION
    return None if name is None else ELASTICSEARCH_TYPES.get(name)


_MILVUS: dict[str, tuple[int, ...]] = {
    _DOWN: (2, 5, 11, 12, 103, 106, 202, 305, 401, 503, 602, 902, 905, 1001, 1002, 1302, 2200),
    _MEMORY: (3,),
    _OVER: (4,),
    _DISK: (7,),
    _RATE: (8, 1807),
    "provider.quota_exhausted": (9, 102, 250, 302, 801),
    _REJECTED: (6, 10, 100, 101, 201, 300, 304, 700, 800),
    _BAD: (
        104, 105, 107, 200, 301, 303, 701, 702, 802, 1100, 1101, 1600, 1601, 1602, 1603, 1700, 1701, 1801,
        1802, 1803, 1804, 1806, 3000,
    ),
    _LONG: (1102,),
    _AUTH: (1400, 1800),
    _PERMISSION: (1401,),
    "cancel.run": (10000,),
    _UNSURE: (10001,),
}  # fmt: skip
"""Milvus: the leaf errors of its package `merr`. Number 1 is an unready server, or any error of an older one."""
MILVUS_CODES = {number: kind for kind, numbers in _MILVUS.items() for number in numbers}


def kind_of_milvus(code: int | None) -> str | None:
    """The kind for an error code of Milvus."""
    return None if code is None else MILVUS_CODES.get(code)
