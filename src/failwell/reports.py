"""The parts of a report, and the ways to show one: text, panel, JSON, Markdown, webhook.

Example:
    >>> from failwell import describe
    >>> from failwell.reports import render_text
    >>> print(render_text(describe(ConnectionRefusedError(111, "Connection refused"))))
    error: ...
"""

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which would cost an import: checkers go by the name
if TYPE_CHECKING:
    from failwell.delivery.agent_output import agent_json as agent_json
    from failwell.delivery.agent_output import agent_markdown as agent_markdown
    from failwell.delivery.failure_text import panel as panel
    from failwell.delivery.failure_text import render_text as render_text
    from failwell.delivery.paging import PageWindow as PageWindow
    from failwell.delivery.paging import set_page_window as set_page_window
    from failwell.delivery.webhook import ReservedKey as ReservedKey
    from failwell.delivery.webhook import check_payload as check_payload
    from failwell.delivery.webhook import failure_payload as failure_payload
    from failwell.report.checked import check_reply as check_reply
    from failwell.report.failure_context import Layer as Layer
    from failwell.report.failure_context import Ledger as Ledger
    from failwell.report.failure_context import ledger_of as ledger_of
    from failwell.report.failure_context import scene as scene
    from failwell.report.identity import Unclassified as Unclassified
    from failwell.report.identity import unclassified as unclassified
    from failwell.report.record import Attempt as Attempt
    from failwell.report.record import Cause as Cause
    from failwell.report.record import ErrorReport as ErrorReport
    from failwell.report.record import Evidence as Evidence
    from failwell.report.record import Frame as Frame
    from failwell.report.record import Internal as Internal
    from failwell.report.record import Scene as Scene
    from failwell.report.record import TracebackPolicy as TracebackPolicy
    from failwell.report.saved_failures.saved_reply import SavedReply as SavedReply
    from failwell.report.saved_failures.saved_reply import describe_reply as describe_reply
    from failwell.report.saved_failures.saved_reply import parse_reply as parse_reply
    from failwell.report.severity import Severity as Severity
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "Attempt": "failwell.report.record",
            "Cause": "failwell.report.record",
            "ErrorReport": "failwell.report.record",
            "Evidence": "failwell.report.record",
            "Frame": "failwell.report.record",
            "Internal": "failwell.report.record",
            "Layer": "failwell.report.failure_context",
            "Ledger": "failwell.report.failure_context",
            "PageWindow": "failwell.delivery.paging",
            "ReservedKey": "failwell.delivery.webhook",
            "SavedReply": "failwell.report.saved_failures.saved_reply",
            "Scene": "failwell.report.record",
            "Severity": "failwell.report.severity",
            "TracebackPolicy": "failwell.report.record",
            "Unclassified": "failwell.report.identity",
            "agent_json": "failwell.delivery.agent_output",
            "agent_markdown": "failwell.delivery.agent_output",
            "check_payload": "failwell.delivery.webhook",
            "check_reply": "failwell.report.checked",
            "describe_reply": "failwell.report.saved_failures.saved_reply",
            "failure_payload": "failwell.delivery.webhook",
            "ledger_of": "failwell.report.failure_context",
            "panel": "failwell.delivery.failure_text",
            "parse_reply": "failwell.report.saved_failures.saved_reply",
            "render_text": "failwell.delivery.failure_text",
            "scene": "failwell.report.failure_context",
            "set_page_window": "failwell.delivery.paging",
            "unclassified": "failwell.report.identity",
        },
    )
