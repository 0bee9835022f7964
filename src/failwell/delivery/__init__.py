"""Delivery: one report in the format of one audience or protocol.

Each output is a function of a report. A library that an output needs is imported when it is used. Imports
`failwell.report` and below, and not `failwell.runtime`, which is on the same level.
"""

from failwell._moved import keep_old_modules

keep_old_modules(
    __name__,
    {
        "agent": "failwell.reports",
        "asgi": "failwell.http",
        "log": "failwell.logging",
        "mcp": "failwell.integrations.mcp",
        "otel": "failwell.otel",
        "panel": "failwell.reports",
        "problem": "failwell.http",
        "sentry": "failwell.sentry",
        "starlette": "failwell.integrations.starlette",
        "structlog": "failwell.integrations.structlog",
        "text": "failwell.reports",
    },
)
