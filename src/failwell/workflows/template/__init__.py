"""Templates and conditions: minijinja, restricted to what a workflow needs.

`render` evaluates templates, `condition` evaluates a `when`, `coerce` turns rendered text into typed values and
`references` lists what a template refers to without running it. Data goes in as read-only views. The source
is checked before the engine sees it, because some texts would exhaust the stack or the memory of the process.
"""
