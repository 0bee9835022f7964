"""Small files for other languages, with which a script raises a typed error.

They are shipped as they are and copied or sourced by scripts. Nothing in the package
imports them.
"""
