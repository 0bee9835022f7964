"""A workflow file → a `Plan`, with every mistake of the file in one pass.

Tables describe what a file may contain: one shape for each block. The compiler reads files by them, and
`json_schema.workflow_schema` turns the same tables into a JSON Schema for editors, so that the two cannot differ.
Rules that need the whole graph are in `failwell.workflows.check`.
"""
