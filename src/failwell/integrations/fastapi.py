"""FastAPI: the same `install` as for Starlette; requests that fail validation name their fields.

Example:
    >>> from fastapi import FastAPI
    >>> from failwell.integrations.fastapi import install
    >>> install(FastAPI())
"""

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which would cost an import: checkers go by the name
if TYPE_CHECKING:
    from failwell.integrations.starlette import HTTPRefusal as HTTPRefusal
    from failwell.integrations.starlette import install as install
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "failwell.integrations.starlette": "HTTPRefusal install",
        },
    )
