"""together. `body` is the whole envelope; used-up credit is a 402 or the type `credit_limit`."""

from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import adapter, in_stream

TABLES: dict[str, Table] = {"together": {"TogetherError": adapter("together", "together", in_stream)}}
