"""One report in the format of one audience or protocol: text, panel, JSON, Markdown, webhook.

Each output is a function of a report. A library that an output needs is imported when it is used.

Example:
    >>> from failwell import describe
    >>> from failwell.delivery import render_text
    >>> print(render_text(describe(ConnectionRefusedError(111, "Connection refused"))))
    error: ...
"""

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which would cost an import: checkers go by the name
if TYPE_CHECKING:
    from failwell.delivery.agent_output import agent_json as agent_json
    from failwell.delivery.agent_output import agent_markdown as agent_markdown
    from failwell.delivery.paging import PageWindow as PageWindow
    from failwell.delivery.paging import set_page_window as set_page_window
    from failwell.delivery.terminal import panel as panel
    from failwell.delivery.terminal import render_text as render_text
    from failwell.delivery.webhook import ReservedKey as ReservedKey
    from failwell.delivery.webhook import check_payload as check_payload
    from failwell.delivery.webhook import failure_payload as failure_payload
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "failwell.delivery.agent_output": "agent_json agent_markdown",
            "failwell.delivery.paging": "PageWindow set_page_window",
            "failwell.delivery.terminal": "panel render_text",
            "failwell.delivery.webhook": "ReservedKey check_payload failure_payload",
        },
    )
