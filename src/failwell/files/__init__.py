"""Files that people write: YAML and TOML in, checked values out, every mistake with file, line and column.

`includes` and `toml_reader` turn text into a tree in which every key and value knows its place. `values` and
`shapes` describe what a file may say; reading a tree by a shape gives typed values and a list of mistakes.
The same shapes give the JSON Schema for editors and the reference pages.

Example:
    >>> from failwell.files import read_policy
    >>> read_policy({"name": "patient"}).name
    'patient'
"""

TYPE_CHECKING = False  # as `typing.TYPE_CHECKING`, which would cost an import: checkers go by the name
if TYPE_CHECKING:
    from failwell.files.policy_file import read_policy as read_policy
else:
    from failwell._lazy import lazy_names

    __getattr__, __dir__, __all__ = lazy_names(__name__, {"failwell.files.policy_file": "read_policy"})
