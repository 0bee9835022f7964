"""What a script's streams amount to: its output, checked where the author said what it must be."""

from collections.abc import Mapping
from typing import Any, cast

from failwell.workflow.envelope import Malformed, parse


def output_of(
    stdout: str, stderr: str, exit_code: int | None, stdout_file: str | None, stderr_file: str | None
) -> dict[str, Any]:
    """The output of a script: its texts, its exit code, and the files that hold what was too long."""
    output: dict[str, Any] = {"stdout": stdout, "stderr": stderr}
    if exit_code is not None:
        output["exit_code"] = exit_code
    if stdout_file is not None:
        output["stdout_file"] = stdout_file
    if stderr_file is not None:
        output["stderr_file"] = stderr_file
    return output


def object_of(text: str) -> dict[str, Any] | None:
    """The JSON object that is all of a script's stdout, if it is one."""
    bare = text.strip()
    if not (bare.startswith("{") and bare.endswith("}")):
        return None
    try:
        value = parse(bare.encode("utf-8"))
    except Malformed:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


class Broken(ValueError):
    """An output that is not what was declared; `field` is where, if that is known."""

    def __init__(self, reason: str, field: str | None = None) -> None:
        super().__init__(reason)
        self.field = field


class Shapes:
    """Validators of declared outputs, compiled once each."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Mapping[str, Any], Any]] = {}

    def check(self, schema: Mapping[str, Any], parsed: dict[str, Any], around: dict[str, Any]) -> None:
        """Hold an output to its schema. The streams take part where the schema speaks of them.

        Raises:
            Broken: it does not fit; the reason names the place and the rule, never a value.
        """
        spoken = {*schema.get("properties", ()), *schema.get("required", ())}
        value = {**{key: inner for key, inner in around.items() if key in spoken}, **parsed}
        for error in self._validator(schema).iter_errors(value):
            path = [str(part) for part in error.instance_path]
            missing = getattr(error.kind, "property", None)
            if missing is not None:
                field = ".".join([*path, str(missing)])
                raise Broken(f"`{field}` is missing", field)
            place = ".".join(path)
            raise Broken(f"`{place or 'stdout'}` breaks the rule `{error.kind.name}`", place or None)

    def _validator(self, schema: Mapping[str, Any]) -> Any:
        held = self._made.get(id(schema))
        if held is None:
            from jsonschema_rs import validator_for

            # The schema is kept with its validator, so that no other can ever have its identity.
            held = self._made[id(schema)] = (schema, validator_for(dict(schema)))
        return held[1]
