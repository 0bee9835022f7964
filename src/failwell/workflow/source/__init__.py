"""YAML text → a tree in which every key and value knows its file, line and column.

The rules are those of YAML 1.2's core schema, made narrower: decimal numbers only, no tags but `!file`,
no merge keys, bounded aliases, one document. `load.load` reads a file and what it includes.
"""
