"""Templates and conditions: Jinja2's immutable sandbox, with conductor's `default`, `json` and order of lookups.

`render` evaluates templates and conditions, `environment` sets up Jinja2, `limits` counts the steps of a rendering and
the size of what it creates, `references` lists what a template refers to, `explain` puts a mistake into words, and
`values` turns rendered text into typed values. Only what renders or parses a template loads Jinja2.
"""
