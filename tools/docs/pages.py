"""Which page of docs/reference is written by which function."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from tools.docs.api import modules
from tools.docs.kinds import namespaces

ROOT = Path(__file__).resolve().parents[2]

PAGES = {
    "kinds.md": "tools.docs.kinds:kinds_page",
    **{f"kinds/{name}.md": f"tools.docs.kinds:namespace_page:{name}" for name in namespaces()},
    "api.md": "tools.docs.api:api_page",
    **{f"api/{name}.md": f"tools.docs.api:module_page:{name}" for name in modules()},
    "rosetta.md": "tools.docs.kinds:rosetta_page",
    "acceptance.md": "tools.acceptance:acceptance_page",
    "cli.md": "tools.docs.cli:cli_page",
    "exit-codes.md": "tools.docs.cli:exit_codes_page",
    "wire.md": "tools.docs.wire:wire_page",
    "providers.md": "tools.docs.providers:providers_page",
    "frameworks.md": "tools.docs.frameworks:frameworks_page",
    "workflow-file.md": "tools.docs.workflow:workflow_file_page",
    "manifest.md": "tools.docs.manifest:manifest_page",
    "events.md": "tools.docs.events:events_page",
}
"""Page to the function that writes it, and its argument. Looked up by name, so that a missing source names itself."""

COMMITTED = ("kinds.md", "acceptance.md")
"""Pages that stand in the repository too: what a kind means and which test shows what is looked up without a site."""

NOTE = "<!-- Written by `make docs`. Change the code or tools/docs, not this file. -->\n\n"


class NoSource(Exception):
    """A page cannot be written because what it is written from is not there."""


def page_text(page: str) -> str:
    """The text `docs/reference/<page>` should have now.

    Raises:
        NoSource: the code that the page describes is missing; the message says which.
    """
    module, function, *arguments = PAGES[page].split(":")
    try:
        write: Callable[..., str] | None = getattr(import_module(module), function, None)
        if write is None:
            raise NoSource(f"docs/reference/{page} has no source: {module} has no `{function}`")
        return NOTE + write(*arguments)
    except (ImportError, FileNotFoundError) as missing:
        raise NoSource(f"docs/reference/{page} has no source: {missing}") from missing
