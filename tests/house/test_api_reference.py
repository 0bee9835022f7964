"""The API reference has every public name, with its signature and what its docstring says."""

import re
from importlib import import_module

from tests.specimens import each
from tools.api import PROMISED
from tools.docs.api import api_page, module_page


@each("module", PROMISED)
def test_every_public_name_has_an_entry_with_code(module: str) -> None:
    page = module_page(module)

    entries = dict(
        re.findall(r"^## (?:class )?(\w+)\n\n```python\n(.*?)\n```", page, re.MULTILINE | re.DOTALL)
    )

    names = {name for name in import_module(module).__all__ if not name.startswith("__")}
    assert entries.keys() == names
    assert [name for name, code in entries.items() if name not in code] == []
    assert f"(api/{module}.md)" in api_page()
    anchors = re.findall(r"^\| \[`\w+`\]\(#(.+?)\) \|", page, re.MULTILINE)
    assert len(anchors) == len(set(anchors)) == len(names)


def test_a_long_signature_has_a_line_for_each_parameter() -> None:
    page = module_page("failwell")

    assert "describe(\n    error: " in page
    assert "\n    provider: str | None=None,\n" in page


def test_parameters_and_examples_of_a_docstring_are_lists_and_code() -> None:
    page = module_page("failwell")

    assert "**Args**\n\n- `" in page
    assert "**Example**\n\n```python\n>>> import failwell\n" in page
    assert "\nArgs:\n" not in page


def test_fields_of_a_record_are_a_table() -> None:
    page = module_page("failwell")

    assert "| `first` | `float` | `1.0` | Seconds before the second call. |" in page
