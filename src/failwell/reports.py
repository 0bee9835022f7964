"""The parts of a report, and the ways to show one: text, panel, JSON, Markdown, webhook.

Example:
    >>> from failwell import describe
    >>> from failwell.reports import render_text
    >>> print(render_text(describe(ConnectionRefusedError(111, "Connection refused"))))
    error: ...
"""

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which would cost an import: checkers go by the name
if TYPE_CHECKING:
    from failwell.adapters.checked_replies import check_reply as check_reply
    from failwell.adapters.saved.http_reply import SavedReply as SavedReply
    from failwell.adapters.saved.http_reply import describe_reply as describe_reply
    from failwell.adapters.saved.http_reply import parse_reply as parse_reply
    from failwell.delivery.agent_output import agent_json as agent_json
    from failwell.delivery.agent_output import agent_markdown as agent_markdown
    from failwell.delivery.paging import PageWindow as PageWindow
    from failwell.delivery.paging import set_page_window as set_page_window
    from failwell.delivery.terminal import panel as panel
    from failwell.delivery.terminal import render_text as render_text
    from failwell.delivery.webhook import ReservedKey as ReservedKey
    from failwell.delivery.webhook import check_payload as check_payload
    from failwell.delivery.webhook import failure_payload as failure_payload
    from failwell.errors.context import Layer as Layer
    from failwell.errors.context import Ledger as Ledger
    from failwell.errors.context import ledger_of as ledger_of
    from failwell.errors.context import scene as scene
    from failwell.errors.identity import Unclassified as Unclassified
    from failwell.errors.identity import unclassified as unclassified
    from failwell.errors.report import Attempt as Attempt
    from failwell.errors.report import Cause as Cause
    from failwell.errors.report import ErrorReport as ErrorReport
    from failwell.errors.report import Evidence as Evidence
    from failwell.errors.report import Frame as Frame
    from failwell.errors.report import Internal as Internal
    from failwell.errors.report import Scene as Scene
    from failwell.errors.report import Severity as Severity
    from failwell.errors.report import TracebackPolicy as TracebackPolicy
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "Attempt": "failwell.errors.report",
            "Cause": "failwell.errors.report",
            "ErrorReport": "failwell.errors.report",
            "Evidence": "failwell.errors.report",
            "Frame": "failwell.errors.report",
            "Internal": "failwell.errors.report",
            "Layer": "failwell.errors.context",
            "Ledger": "failwell.errors.context",
            "PageWindow": "failwell.delivery.paging",
            "ReservedKey": "failwell.delivery.webhook",
            "SavedReply": "failwell.adapters.saved.http_reply",
            "Scene": "failwell.errors.report",
            "Severity": "failwell.errors.report",
            "TracebackPolicy": "failwell.errors.report",
            "Unclassified": "failwell.errors.identity",
            "agent_json": "failwell.delivery.agent_output",
            "agent_markdown": "failwell.delivery.agent_output",
            "check_payload": "failwell.delivery.webhook",
            "check_reply": "failwell.adapters.checked_replies",
            "describe_reply": "failwell.adapters.saved.http_reply",
            "failure_payload": "failwell.delivery.webhook",
            "ledger_of": "failwell.errors.context",
            "panel": "failwell.delivery.terminal",
            "parse_reply": "failwell.adapters.saved.http_reply",
            "render_text": "failwell.delivery.terminal",
            "scene": "failwell.errors.context",
            "set_page_window": "failwell.delivery.paging",
            "unclassified": "failwell.errors.identity",
        },
    )
