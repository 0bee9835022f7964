"""groq. `body` is the whole envelope, and a daily limit differs from a short one in its prose alone."""

from failwell.adapters.registry import Table
from failwell.adapters.sdk_exceptions import adapter, in_stream

TABLES: dict[str, Table] = {"groq": {"GroqError": adapter("groq", "groq", in_stream)}}
