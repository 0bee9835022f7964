"""Warnings of ours as one line on stderr, without the place in the code that a program's author would want."""

import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def warnings_as_lines() -> Generator[None]:
    """Within the block, a configuration that loses keys is told in one line, each time."""
    from failwell.jobs.schema_language import UnknownConfigWarning

    with warnings.catch_warnings():
        before = warnings.showwarning

        def shown(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: object = None,  # noqa: ARG001  (what `warnings` calls it with; ours go to stderr)
            line: str | None = None,
        ) -> None:
            if issubclass(category, UnknownConfigWarning):
                print(f"warning: {message}", file=sys.stderr)
            else:
                before(message, category, filename, lineno, None, line)

        warnings.simplefilter("always", UnknownConfigWarning)
        warnings.showwarning = shown
        yield
