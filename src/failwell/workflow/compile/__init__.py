"""A tree of a workflow file → a `Plan`, with every mistake of the file found in one pass.

What a file may say is written as tables (`steps`, `head`, `runtime`, `routes`): one closed shape for each
block. The checker walks the tables, and `schema.workflow_schema` turns the same tables into a JSON Schema
for editors, so the two cannot disagree. What needs the whole graph is checked in `failwell.workflow.check`.
"""

from failwell.workflow.compile.compiler import Compiled, compile_file, compile_text

__all__ = ["Compiled", "compile_file", "compile_text"]
