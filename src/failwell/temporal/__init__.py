"""Temporal as the engine: workflow runs and jobs that several machines share.

A Temporal server keeps the state, and `failwell temporal worker` does the work. This room imports
`failwell.workflows`, `failwell.jobs` and below. `temporalio` is loaded when a connection is opened.

Example:
    >>> from failwell.temporal import ConnectionOptions
    >>> ConnectionOptions(address="temporal.example.com:7233").namespace
    'default'
"""

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which would cost an import: checkers go by the name
if TYPE_CHECKING:
    from failwell.temporal.connection import ConnectionOptions as ConnectionOptions
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "ConnectionOptions": "failwell.temporal.connection",
        },
    )
