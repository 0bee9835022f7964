"""The JSON Schema of workflow files, for editors, built from the tables that the compiler uses."""

from typing import Any

from failwell.files.shapes import DEFINITIONS
from failwell.workflows.compile.file_shape import FILE
from failwell.workflows.compile.group_shapes import FOR_EACH, PARALLEL
from failwell.workflows.compile.stage_shapes import STAGE
from failwell.workflows.compile.steps import SHAPES

TITLE = "failwell workflow"
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def workflow_schema() -> dict[str, Any]:
    """The JSON Schema of a workflow file.

    It describes the shape and not what names refer to. An editor has to be configured for the tag `!file`.
    """
    return {
        "$schema": DRAFT,
        "title": TITLE,
        **FILE.schema(),
        "$defs": {
            "step": _step(),
            **{f"step_{kind}": shape.schema() for kind, shape in SHAPES.items()},
            "stage": STAGE.schema(),
            "parallel": PARALLEL.schema(),
            "for_each": FOR_EACH.schema(),
            **{name: find().schema() for name, find in DEFINITIONS.items()},
        },
    }


def _step() -> dict[str, Any]:
    """A step: its `type` decides which keys it has; the default is an agent."""
    types: dict[str, Any] = {"enum": [*SHAPES, None]}
    typeless = {
        "anyOf": [{"not": {"required": ["type"]}}, {"properties": {"type": {"enum": ["agent", None]}}}],
    }
    rules: list[dict[str, Any]] = [
        {
            "if": typeless
            if kind == "agent"
            else {"properties": {"type": {"const": kind}}, "required": ["type"]},
            "then": {"$ref": f"#/$defs/step_{kind}"},
        }
        for kind in SHAPES
    ]
    return {"type": "object", "properties": {"type": types}, "allOf": rules}
