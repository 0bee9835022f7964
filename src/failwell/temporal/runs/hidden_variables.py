"""Values of secret environment variables, which never leave a machine.

A workflow file may name `${API_KEY}`. The plan that travels holds a marker in its place, and each worker puts the value of
its own environment there. A script cannot forge a marker: it has a random part that no step sees.
"""

import os
import re
from collections.abc import Iterable, Mapping
from secrets import token_hex
from typing import Any

from failwell.errors.axes import ActionKind
from failwell.errors.facts import UserAction
from failwell.errors.faults import Validation
from failwell.errors.json_walk import map_texts
from failwell.errors.masking.secret_names import names_a_secret

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)")
_SHORTEST = 4
"""Characters of a value that is worth hiding; a shorter one would occur by chance."""


def secret_variable(reference: str) -> str:
    """The variable from which a worker takes a secret input, `workflow.input.NAME`."""
    return f"FAILWELL_SECRET_{reference.rpartition('.')[2].upper()}"


def new_mark() -> str:
    """The random part of the markers of a run."""
    return token_hex(12)


def secret_values(texts: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The secret variables that workflow files name: their values and names."""
    names = {name for text in texts for name in _VARIABLE.findall(text) if names_a_secret(name)}
    values = {environ[name]: name for name in sorted(names) if len(environ.get(name, "")) >= _SHORTEST}
    return dict(sorted(values.items(), key=lambda pair: -len(pair[0])))


def hide(data: Any, values: Mapping[str, str], mark: str) -> Any:
    """JSON with a marker in the place of each secret value."""

    def replace(text: str) -> str:
        for value, name in values.items():
            text = text.replace(value, _marker(mark, name))
        return text

    return map_texts(data, replace, keys=False) if values else data


def reveal(data: Any, mark: str | None) -> Any:
    """JSON with the values of this machine's environment in the place of markers.

    Raises:
        Validation: a variable is not set here.
    """
    if mark is None:
        return data
    pattern = re.compile(re.escape(_marker(mark, "\0")).replace("\0", "([A-Za-z_][A-Za-z0-9_]*)"))
    return map_texts(data, lambda text: pattern.sub(_value, text) if mark in text else text, keys=False)


def _value(match: "re.Match[str]") -> str:
    name = match[1]
    value = os.environ.get(name)
    if value is None:
        raise Validation(
            kind="validation.config_invalid",
            message=f"the environment variable `{name}` is not set on this worker",
            user_action=UserAction(
                ActionKind.FIX_CONFIGURATION, f"set {name} in the environment of the workers"
            ),
        )
    return value


def _marker(mark: str, name: str) -> str:
    return f"<env {mark} {name}>"
