"""The README as a package index shows it: a metadata hook for hatchling.

The README links to files of the repository. A package index cannot resolve such links, and there is no public host to point them
to, so the published text names the files instead, and says where they are.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"\[([^\]]+)\]\((?![a-z]+://)([^)\s]+)\)")
_NOTE = "Paths in parentheses are files of the source distribution.\n"


def published(text: str) -> str:
    """The README with each relative link replaced by its text and its path."""
    title, _, rest = text.partition("\n\n")
    return f"{title}\n\n{_NOTE}\n{_LINK.sub(_named, rest)}"


def _named(link: re.Match[str]) -> str:
    return f"{link[1]} (`{link[2]}`)"


class CustomMetadataHook(MetadataHookInterface):
    """Sets the long description of the distribution."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Put the published README into the metadata."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": published(text)}
