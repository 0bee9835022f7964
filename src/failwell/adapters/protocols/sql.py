"""SQLSTATE, and the numbers of MySQL and MariaDB.

SQLSTATE: ISO/IEC 9075-2 (class values), and the appendix "PostgreSQL Error Codes" of PostgreSQL's manual for
its own. A class is two characters. A code without a row of its own has the meaning of its class.
Numbers: "Server Error Message Reference" and "Client Error Message Reference" of the MySQL manual.
"""

from functools import cache

from failwell.errors.lazy_regex import lazy_regex

_DOWN, _BUSY, _UNSURE = "provider.unavailable", "tool.busy", "provider.outcome_unknown"
_BAD, _REJECTED, _BUG = "provider.bad_request", "provider.rejected", "internal.bug"
_AUTH, _PERMISSION, _CONNECTION = "provider.auth", "provider.permission", "provider.connection"
_OVER, _TIMEOUT, _CORRUPT = "provider.overloaded", "provider.timeout", "session.store_corrupt"
_DISK, _MEMORY = "resource.disk", "resource.system_memory"
_CONFIG = "validation.config_invalid"

SQLSTATE_CLASSES: dict[str, str] = {
    "08": _UNSURE,  # connection exception; the two codes of a connection that never came about are below
    "09": _BAD, "0A": _BAD, "0B": _BUG, "0F": _BAD, "0L": _PERMISSION, "0P": _REJECTED, "0Z": _BUG,
    "20": _BAD, "21": _BAD,
    "22": _BAD,  # data exception: a value that the column or the function does not take
    "23": _BAD,  # integrity constraint violation
    "24": _BUG, "25": _BUG, "26": _BUG, "27": _BAD,
    "28": _AUTH,
    "2B": _BAD, "2D": _BUG, "2F": _BAD, "34": _BUG, "38": _BAD, "39": _BAD, "3B": _BUG,
    "3C": _BUG, "3D": _REJECTED, "3F": _REJECTED,
    "40": _BUSY,  # transaction rollback: it lost against another one, and may be run again
    "42": _BAD,  # syntax error or access rule violation
    "44": _BAD,
    "53": "resource.exhausted",
    "54": _BAD,
    "55": _REJECTED,
    "57": _DOWN,  # operator intervention
    "58": _DOWN,  # system error of the server
    "72": _BUSY, "F0": _REJECTED, "IM": _CONFIG, "P0": _BAD,
    "XX": "provider.unknown",  # internal error of the server
}  # fmt: skip

SQLSTATES: dict[str, str] = {
    "08001": _CONNECTION, "08004": _CONNECTION,
    "25006": _REJECTED,  # a write on a server that only reads
    "25P03": _DOWN, "25P04": _TIMEOUT,
    "40002": _BAD, "40003": _UNSURE,
    "42501": _PERMISSION,
    # What the statement names does not exist: a schema that was not migrated, or another database.
    "42703": _REJECTED, "42704": _REJECTED, "42883": _REJECTED, "42P01": _REJECTED,
    "42S02": _REJECTED, "42S22": _REJECTED,  # the same, as ODBC and MySQL write it
    "53100": _DISK, "53200": _MEMORY, "53300": _OVER, "53400": _REJECTED,
    "55006": _BUSY, "55P03": _BUSY,
    "57014": _TIMEOUT,  # a statement that was ended and undone, by a time limit or by somebody
    "57P04": _REJECTED,
    "58P01": _REJECTED, "58P02": _REJECTED, "58P03": _REJECTED,
    "HV00N": _CONNECTION, "HV001": _MEMORY,
    "HYT00": _UNSURE, "HYT01": _CONNECTION,  # ODBC: the time limit of a query, and of a login
    "P0004": _BUG,
    "XX001": _CORRUPT, "XX002": _CORRUPT,
}  # fmt: skip

CONDITION_NAMES = """
08000 connection_exception 08001 sqlclient_unable_to_establish_sqlconnection 08003 connection_does_not_exist
08004 sqlserver_rejected_establishment_of_sqlconnection 08006 connection_failure 08007 transaction_resolution_unknown
08P01 protocol_violation 0A000 feature_not_supported 0P000 invalid_role_specification 21000 cardinality_violation
22000 data_exception 22001 string_data_right_truncation 22003 numeric_value_out_of_range 22004 null_value_not_allowed
22007 invalid_datetime_format 22008 datetime_field_overflow 2201B invalid_regular_expression 22012 division_by_zero
22021 character_not_in_repertoire 22023 invalid_parameter_value 2202E array_subscript_error 22032 invalid_json_text
22P02 invalid_text_representation 22P03 invalid_binary_representation 22P05 untranslatable_character
23000 integrity_constraint_violation 23001 restrict_violation 23502 not_null_violation 23503 foreign_key_violation
23505 unique_violation 23514 check_violation 23P01 exclusion_violation 24000 invalid_cursor_state
25000 invalid_transaction_state 25001 active_sql_transaction 25006 read_only_sql_transaction
25P01 no_active_sql_transaction 25P02 in_failed_sql_transaction 25P03 idle_in_transaction_session_timeout
25P04 transaction_timeout 26000 invalid_sql_statement_name 28000 invalid_authorization_specification
28P01 invalid_password 2BP01 dependent_objects_still_exist 34000 invalid_cursor_name 3B001 invalid_savepoint_specification
3D000 invalid_catalog_name 3F000 invalid_schema_name 40000 transaction_rollback 40001 serialization_failure
40002 transaction_integrity_constraint_violation 40003 statement_completion_unknown 40P01 deadlock_detected
42000 syntax_error_or_access_rule_violation 42501 insufficient_privilege 42601 syntax_error 42602 invalid_name
42622 name_too_long 42701 duplicate_column 42702 ambiguous_column 42703 undefined_column 42704 undefined_object
42710 duplicate_object 42723 duplicate_function 42725 ambiguous_function 42803 grouping_error 42804 datatype_mismatch
42809 wrong_object_type 42830 invalid_foreign_key 42846 cannot_coerce 42883 undefined_function 42P01 undefined_table
42P02 undefined_parameter 42P03 duplicate_cursor 42P04 duplicate_database 42P05 duplicate_prepared_statement
42P06 duplicate_schema 42P07 duplicate_table 42P10 invalid_column_reference 42P18 indeterminate_datatype
53000 insufficient_resources 53100 disk_full 53200 out_of_memory 53300 too_many_connections
53400 configuration_limit_exceeded 54000 program_limit_exceeded 54001 statement_too_complex 54011 too_many_columns
54023 too_many_arguments 55000 object_not_in_prerequisite_state 55006 object_in_use 55P02 cant_change_runtime_param
55P03 lock_not_available 57000 operator_intervention 57014 query_canceled 57P01 admin_shutdown 57P02 crash_shutdown
57P03 cannot_connect_now 57P04 database_dropped 57P05 idle_session_timeout 58000 system_error 58030 io_error
58P01 undefined_file 58P02 duplicate_file F0000 config_file_error P0001 raise_exception P0002 no_data_found
P0003 too_many_rows P0004 assert_failure XX000 internal_error XX001 data_corrupted XX002 index_corrupted
"""
"""The condition names of PostgreSQL. Its drivers name their exception classes after them."""

_ALIASES: dict[str, str] = {
    "postgresconnection": "08000", "clientcannotconnect": "08001", "connectionrejection": "08004", "serialization": "40001",
    "syntaxoraccess": "42000", "postgressyntax": "42601", "postgressystem": "58000", "postgresio": "58030",
    "raise": "P0001", "assert": "P0004", "internalserver": "XX000",
}  # fmt: skip
"""What asyncpg calls some of them, without the `Error` at the end."""
_SQLSTATE = lazy_regex(r"[0-9A-Z]{5}")


def kind_of_sqlstate(code: str | None) -> str | None:
    """The kind for a SQLSTATE, by its own row or by its class: `23505` → `provider.bad_request`."""
    if code is None or not _SQLSTATE.fullmatch(code):
        return None
    return SQLSTATES.get(code) or SQLSTATE_CLASSES.get(code[:2])


def condition_of(code: str) -> str | None:
    """PostgreSQL's name of a SQLSTATE: `23505` → `unique_violation`."""
    return _names().get(code)


def sqlstate_of(name: str) -> str | None:
    """The SQLSTATE that a driver's class is named after: `UniqueViolation`, `UniqueViolationError` → `23505`."""
    return _by_name().get(_bare(name))


def class_names() -> tuple[str, ...]:
    """The classes that psycopg names after a SQLSTATE."""
    return tuple("".join(word.capitalize() for word in name.split("_")) for name in _names().values())


@cache
def _names() -> dict[str, str]:
    words = CONDITION_NAMES.split()
    return dict(zip(words[::2], words[1::2], strict=True))


@cache
def _by_name() -> dict[str, str]:
    return {**{_bare(name): code for code, name in _names().items()}, **_ALIASES}


def _bare(name: str) -> str:
    # asyncpg drops `_violation` or adds `error` in places, so both are left out of the comparison.
    return name.lower().replace("_", "").removesuffix("error")


_MYSQL: dict[str, tuple[int, ...]] = {
    _OVER: (1040, 1203),  # too many connections, in all or of one user
    _AUTH: (1045, 1251, 1275, 1524, 1698, 1820, 1862, 2059, 2061, 3118, 3955),
    _PERMISSION: (1044, 1129, 1130, 1142, 1143, 1227, 1370, 1410, 3159),
    _REJECTED: (
        1046, 1049, 1051, 1054, 1109, 1146, 1286, 1290, 1305, 1360, 1436, 1792, 1836, 3100,
    ),
    _BAD: (
        1022, 1048, 1050, 1052, 1055, 1059, 1060, 1061, 1062, 1063, 1064, 1065, 1066, 1067, 1071, 1075, 1101, 1111,
        1136, 1138, 1149, 1166, 1169, 1210, 1216, 1217, 1222, 1231, 1235, 1241, 1242, 1247, 1264, 1265, 1292, 1364,
        1365, 1366, 1367, 1390, 1406, 1411, 1416, 1425, 1426, 1441, 1451, 1452, 1525, 1557, 1582, 1586, 1690, 3140,
        3141, 3143, 3819, 4025,
    ),
    # Lock waits and deadlocks; and the write conflicts of TiDB, "Error codes": https://docs.pingcap.com/tidb/stable/error-codes
    _BUSY: (1205, 1206, 1213, 1614, 3058, 3101, 3572, 8002, 8005, 8022, 8027, 8028, 9003, 9004, 9007),
    _TIMEOUT: (1969, 3024),  # the server's own time limit for a statement, which it undoes
    _DISK: (1021, 1114, 3),
    _MEMORY: (5, 1037, 1038, 1041),
    _DOWN: (1053, 1077, 1078, 1079, 1152, 1158, 1159, 1160, 1161, 1180, 1927, 2020, 3168, 9001, 9002, 9005),
    "provider.rate_limited": (1226,),  # so many queries, updates or connections an hour
    "provider.context_too_long": (1153,),  # a packet larger than `max_allowed_packet`
    "cancel.run": (1317,),  # somebody killed the query
    _CORRUPT: (1033, 1034, 1035, 1194, 1195, 126, 127, 134, 144, 145),
    _CONNECTION: (2001, 2002, 2003, 2004, 2005, 2007, 4031),
    _UNSURE: (2006, 2013, 2055),  # gone away, or lost in the middle of a query
    "provider.tls_failed": (2026,),
    _CONFIG: (2019, 2054, 1115, 1193, 1273, 1298),
}  # fmt: skip
MYSQL_ERRORS = {number: kind for kind, numbers in _MYSQL.items() for number in numbers}
_MYSQL_SERVER = (range(1_000, 2_000), range(3_000, 5_000))
"""Numbers of the server's errors. Those of the client libraries lie between them."""


def kind_of_mysql(number: int | None, state: str | None = None) -> str | None:
    """The kind for an error number of MySQL, MariaDB or a client library of theirs, and the SQLSTATE beside it.

    Where neither has a row, a number of the server's says that it refused the statement, and did nothing.
    """
    if number is None:
        return None
    known = MYSQL_ERRORS.get(number) or kind_of_sqlstate(state)
    return known or (_BAD if any(number in numbers for numbers in _MYSQL_SERVER) else None)
