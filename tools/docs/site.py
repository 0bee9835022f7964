"""The hook of MkDocs: reference pages are written when the site is built, and are not committed."""

import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add every generated page that is not a file."""
    # MkDocs loads a hook by its path, so the project itself is not on the path of modules.
    sys.path.insert(0, str(ROOT))
    from tools.docs.pages import COMMITTED, PAGES, page_text

    for page in sorted(set(PAGES) - set(COMMITTED)):
        files.append(File.generated(config, f"reference/{page}", content=page_text(page)))
    return files
