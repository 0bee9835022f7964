"""Reads files that people write: YAML and TOML in, checked values out, every mistake with file, line and column.

`includes` and `toml_reader` turn text into a tree in which every key and value knows its place. `values` and
`shapes` describe what a file may say; reading a tree by a shape gives typed values and a list of mistakes.
The same shapes give the JSON Schema for editors and the reference pages. Nothing here knows what a file is for.
"""
