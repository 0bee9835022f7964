"""The JSON Schema of workflow files, for editors: made from the tables that the checker reads by."""

from typing import Any

from failwell.files.shapes import DEFINITIONS
from failwell.workflow.compile.file_shape import FILE
from failwell.workflow.compile.group_shapes import FOR_EACH, PARALLEL
from failwell.workflow.compile.steps import SHAPES

TITLE = "failwell workflow"
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def workflow_schema() -> dict[str, Any]:
    """What a workflow file may say.

    It knows the shape of a file and nothing of what its names refer to. Where `!file` stands for a block,
    an editor has to be told of the tag.
    """
    return {
        "$schema": DRAFT,
        "title": TITLE,
        **FILE.schema(),
        "$defs": {
            "step": _step(),
            **{f"step_{kind}": shape.schema() for kind, shape in SHAPES.items()},
            "parallel": PARALLEL.schema(),
            "for_each": FOR_EACH.schema(),
            **{name: find().schema() for name, find in DEFINITIONS.items()},
        },
    }


def _step() -> dict[str, Any]:
    """A step: its `type` says which keys it has, and without one it is an agent."""
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
