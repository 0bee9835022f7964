"""The page about manifests leaves no key out, makes none up, and says what holds where a key is left out."""

import sys
from dataclasses import MISSING, fields
from typing import Any

from failwell.jobs.manifest import Manifest, Variable
from failwell.jobs.manifest_file import parse_manifest
from failwell.jobs.platform import Resources
from tools.docs.manifest import manifest_keys, manifest_page

KEYS = dict(manifest_keys())


def names(cls: Any, prefix: str = "") -> set[str]:
    return {f"{prefix}{field.name}" for field in fields(cls)}


def test_every_key_of_a_manifest_is_on_the_page_and_no_other() -> None:
    page = manifest_page()

    held = (names(Manifest) | {"venv"}) - {"directory", "env", "parameters", "resources"}
    held |= names(Resources, "resources.") | {"env.NAME"} | names(Variable, "env.NAME.") - {"env.NAME.name"}
    assert set(KEYS) == held
    assert [name for name in KEYS if f"| `{name}` |" not in page] == []


def test_the_page_says_what_holds_where_a_key_is_left_out() -> None:
    told = {name: key.otherwise.strip("`") for name, key in KEYS.items() if key.otherwise.startswith("`")}

    least = parse_manifest({"name": "x", "object": "m:f"})
    real = {"path": '["."]', "inherit": "[]"} | {
        field.name: f"{getattr(least, field.name):g}"
        for field in fields(Manifest)
        if isinstance(field.default, int | float) and not isinstance(field.default, bool)
    }
    real |= {field.name: "true" for field in fields(Manifest) if field.default is True}
    real |= {f"env.NAME.{field.name}": "false" for field in fields(Variable) if field.default is False}
    real |= {f"resources.{field.name}": "false" for field in fields(Resources) if field.default is False}
    assert told == real
    assert (least.path, least.inherit, least.python) == ((".",), (), sys.executable)


def test_what_the_page_calls_required_is_and_nothing_else() -> None:
    required = {field.name for field in fields(Manifest) if field.default is field.default_factory is MISSING}

    assert {name for name, key in KEYS.items() if key.is_required} == required
