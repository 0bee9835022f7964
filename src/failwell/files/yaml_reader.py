"""YAML events → a tree of items. Depth and size are limited, so that no file can make it slow.

The events come from libyaml if it is installed, else from PyYAML's own parser. The tree is composed here,
because the composers of both recurse and do not record the places of keys.

The value of an unquoted YAML scalar: the core schema of YAML 1.2, with decimal numbers only.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, cast

from failwell.errors.missing_extra import need
from failwell.files.env_variables import expand
from failwell.files.item_tree import Item, Path, Place, is_list, is_map
from failwell.files.mistakes import MistakeLog

_WORDS = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FRACTION = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_BEGINNINGS = frozenset("-+.0123456789~tTfFnN")
_MAX_DIGITS = 4_000
_INFINITY = float("inf")


class NotJson(ValueError):
    """A number that JSON cannot represent."""


def scalar_value(text: str) -> str | int | float | bool | None:
    """The value that an unquoted `text` stands for.

    Raises:
        NotJson: it is infinite, not a number, or has too many digits.
    """
    if text and text[0] not in _BEGINNINGS:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if text[0].isalpha():
        return text
    if _WHOLE.fullmatch(text):
        if len(text) <= _MAX_DIGITS:
            return int(text)
        raise NotJson(f"has more than {_MAX_DIGITS:,} digits")
    if _FRACTION.fullmatch(text):
        fraction = float(text)
        if abs(fraction) == _INFINITY:
            raise NotJson("is too large for a number")
        return fraction
    if _NO_NUMBER.fullmatch(text):
        raise NotJson("is not a number that JSON can represent")
    return text


MAX_DEPTH = 100
"""Levels of nesting in one file."""
MAX_ITEMS = 1_000_000
"""Items in the whole tree; aliases count every time they are used."""

_FLATTEN = "flatten it, or split the file"
_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")

Include = Callable[[str, Item, Path], Item | None]


class _Stop(Exception):
    """Reading this file ends here; the mistake is already in the log."""


def compose(
    text: str,
    file: str,
    log: MistakeLog,
    environ: Mapping[str, str] | None,
    include: Include,
    *,
    folder: str | None = None,
    pure: bool = False,
) -> Item | None:
    """The tree of one document, or `None` if it cannot be read.

    Without `environ`, `${…}` is plain text. `pure` uses PyYAML's parser instead of libyaml.
    """
    need("yaml", "engine")
    import yaml

    composer = _Composer(text, file, log, environ, include, folder)
    try:
        return composer.run(_events(text, pure=pure))
    except yaml.YAMLError as error:
        composer.syntax(error, text)
    except UnicodeEncodeError as error:
        log.add(f"the text has a lone surrogate at character {error.start}", None, hint="save it as UTF-8")
    except _Stop:
        pass
    return None


def _events(text: str, *, pure: bool) -> Any:
    import yaml

    if not pure and yaml.__with_libyaml__:
        from yaml import cyaml

        # The stubs do not declare `CParser`.
        fast: Any = cyaml
        return fast.CParser(text)
    from yaml.parser import Parser
    from yaml.reader import Reader
    from yaml.scanner import Scanner

    class _Pure(Reader, Scanner, Parser):
        def __init__(self, stream: str) -> None:
            Reader.__init__(self, stream)
            Scanner.__init__(self)
            Parser.__init__(self)

    return _Pure(text)


class _Composer:
    """The state while one file is read: open containers, anchors, pending keys."""

    def __init__(
        self,
        text: str,
        file: str,
        log: MistakeLog,
        environ: Mapping[str, str] | None,
        include: Include,
        folder: str | None,
    ) -> None:
        self.text = text
        self.lines: list[str] | None = None
        """The lines of the text, once they are needed."""
        self.file = file
        self.log = log
        self.environ = environ
        self.include = include
        self.folder = folder
        self.open: list[Item] = []
        self.keys: list[str | None] = []
        """For each open container its pending key; `None` in a list."""
        self.anchors: dict[str, Item] = {}
        self.unfinished: set[int] = set()
        """Anchored containers that are still open."""
        self.merging: set[Item] = set()
        """Mappings with a merge key (`<<`) that are still open."""
        self.root: Item | None = None

    # One function with local variables, because a large file has some hundred thousand events.
    def run(self, parser: Any) -> Item | None:  # noqa: C901, PLR0915
        """The root of the document whose events `parser` returns."""
        from yaml.events import (
            AliasEvent,
            DocumentStartEvent,
            MappingEndEvent,
            MappingStartEvent,
            ScalarEvent,
            SequenceEndEvent,
            SequenceStartEvent,
            StreamEndEvent,
        )

        next_event = parser.get_event
        file, folder = self.file, self.folder
        stack, keys = self.open, self.keys
        documents = 0
        holder: Any = None
        in_map = False
        key: str | None = None
        while True:
            event = next_event()
            kind = cast("Any", type(event))
            if kind is ScalarEvent:
                mark = event.start_mark
                if in_map and key is None:
                    key = self.key(event, mark)
                    continue
                text = event.value
                if event.tag is None and event.anchor is None and "${" not in text and "\0" not in text:
                    value: Any = text
                    if event.implicit[0]:
                        try:
                            value = scalar_value(text)
                        except NotJson as problem:
                            value = self.not_json(problem, mark, key)
                    item = Item(value, mark.line, mark.column, file, folder)
                else:
                    item = self.scalar(event, mark, key)
                if event.style == "|":
                    item.first_line = mark.line + 2
                elif event.style == ">":
                    item.first_line, item.written = mark.line + 2, self.block(mark, event.end_mark)
            elif kind is MappingStartEvent or kind is SequenceStartEvent:
                mark = event.start_mark
                if in_map and key is None:
                    self.no_key(mark)
                item = Item({} if kind is MappingStartEvent else [], mark.line, mark.column, file, folder)
                if kind is MappingStartEvent:
                    item.keys = {}
                if event.tag is not None:
                    self.tagged(event.tag, mark, key)
                if event.anchor is not None:
                    self.anchors[event.anchor] = item
                    self.unfinished.add(id(item))
                if len(stack) >= MAX_DEPTH:
                    self.stop(
                        mark, f"nesting is deeper than {MAX_DEPTH} levels", "flatten it, or split the file"
                    )
                stack.append(item)
                keys.append(key)
                holder, in_map, key = item.value, kind is MappingStartEvent, None
                continue
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                item = stack.pop()
                key = keys.pop()
                self.unfinished.discard(id(item))
                if item in self.merging:
                    self.merge(item)
                holder = stack[-1].value if stack else None
                in_map = is_map(holder)
            elif kind is AliasEvent:
                mark = event.start_mark
                if in_map and key is None:
                    self.stop(mark, "a key must be a plain text, not an alias", "write the key out")
                item = self.alias(event, mark)
            elif kind is StreamEndEvent:
                return self.root
            else:
                if kind is DocumentStartEvent:
                    documents += 1
                    if documents > 1:
                        self.stop(
                            event.start_mark,
                            "the file holds more than one document",
                            "keep one document in a file; remove everything from the second `---` on",
                        )
                continue
            if holder is None:
                self.root = item
            elif in_map:
                holder[key] = item
                key = None
                self.count(stack[-1], item)
            else:
                holder.append(item)
                self.count(stack[-1], item)

    def block(self, start: Any, end: Any) -> str:
        """The lines of a block scalar as the file has them, without the line that opens it."""
        if self.lines is None:
            self.lines = _LINE_BREAK.split(self.text)
        return "\n".join(self.lines[start.line + 1 : end.line + bool(end.column)])

    def count(self, parent: Item, child: Item) -> None:
        """Add the size and height of a child to its parent."""
        parent.item_count += child.item_count
        if child.height >= parent.height:
            parent.height = child.height + 1
            if parent.height > MAX_DEPTH:
                self.refuse(child, f"nesting is deeper than {MAX_DEPTH} levels", _FLATTEN)
        if parent.item_count > MAX_ITEMS:
            hint = "use fewer aliases and included files, or split the file"
            self.refuse(child, f"the file expands to more than {MAX_ITEMS:,} values", hint)

    def refuse(self, item: Item, message: str, hint: str) -> NoReturn:
        """Stop reading the file because of one value in it."""
        self.log.add(message, item.place, self.path(None), hint=hint)
        raise _Stop

    def key(self, event: Any, mark: Any) -> str:
        """The key of a mapping, checked."""
        text: str = event.value
        holder = self.open[-1]
        if event.tag is not None:
            self.tagged(event.tag, mark, text)
        if text == "<<" and event.implicit[0]:
            self.merging.add(holder)
        keys = holder.keys
        assert keys is not None
        if text in keys:
            original = holder.key_place(text)
            self.log.add(
                f"the key `{text[:100]}` is written twice in one mapping",
                self.place(mark),
                self.path(text),
                hint=f"keep one of them; the first is in line {original.line}",
                also=(original,),
            )
        keys[text] = (mark.line, mark.column)
        return text

    def merge(self, item: Item) -> None:
        """Replace `<<` by the keys of the mappings that it names. Keys written beside it, and earlier mappings, win."""
        self.merging.discard(item)
        merged: Item = item.value.pop("<<")
        keys = item.keys
        assert keys is not None
        position = keys.pop("<<")
        for source in merged.value if is_list(merged.value) else [merged]:
            if not is_map(source.value):
                self.log.add(
                    "a merge key (`<<`) takes a mapping, or a list of mappings",
                    source.place,
                    self.path("<<"),
                    hint="write an alias of a mapping, such as `<<: *defaults`",
                )
                continue
            for name, child in source.value.items():
                if name not in keys:
                    places = source.keys if source.file == item.file else None
                    keys[name] = (places or {}).get(name, position)
                    item.value[name] = child

    def no_key(self, mark: Any) -> NoReturn:
        """Stop at a list or mapping in the place of a key."""
        holder = self.open[-1]
        if (holder.line, holder.column + 1) == (mark.line, mark.column):
            self.stop(mark, "a template must be in quotes", 'write `"{{ … }}"`; bare braces begin a mapping')
        self.stop(mark, "a key must be a plain text", "write the value under a named key")

    def scalar(self, event: Any, mark: Any, key: str | None) -> Item:
        """A scalar with a tag, an anchor or a variable."""
        text: str = event.value
        expanded = None if self.environ is None or "${" not in text else expand(text, self.environ)
        item = Item(text, mark.line, mark.column, self.file, self.folder)
        path = self.path(key)
        if "\0" in text:
            self.log.add_at(item, path, "the text holds a NUL character", hint="remove the `\\0` from it")
        if expanded is not None:
            item.value = expanded.text
            item.from_env = expanded.from_env
            self.variables(expanded.unset, expanded.problem, item, path)
        elif event.implicit[0]:
            try:
                item.value = scalar_value(text)
            except NotJson as problem:
                item.value = self.not_json(problem, mark, key)
        if event.tag == "!file":
            errors = self.log.errors
            included = self.include(str(item.value), item, path)
            item.is_unread = included is None and self.log.errors > errors
            item = included or item
        elif event.tag is not None:
            self.tagged(event.tag, mark, key)
        if event.anchor is not None:
            self.anchors[event.anchor] = item
        return item

    def variables(self, unset: tuple[str, ...], problem: str, item: Item, path: Path) -> None:
        """Report mistakes in the use of variables."""
        for name in unset:
            self.log.add_at(
                item,
                path,
                f"the environment variable `{name}` is not set",
                kind="validation.config_invalid",
                hint=f"set it, give it a default with `${{{name}:-…}}`, or write `$${{{name}}}` to keep the text",
            )
        if problem:
            self.log.add_at(item, path, f"the text {problem}", kind="validation.config_invalid")

    def alias(self, event: Any, mark: Any) -> Item:
        """The item that an alias refers to."""
        item = self.anchors.get(event.anchor)
        if item is None:
            self.stop(mark, f"there is no anchor `&{event.anchor}` above", "define it before it is used")
        if id(item) in self.unfinished:
            self.stop(mark, f"the anchor `&{event.anchor}` contains itself", "remove the alias inside it")
        return item

    def tagged(self, tag: str, mark: Any, key: str | None) -> None:
        """Refuse a tag."""
        short = tag.replace("tag:yaml.org,2002:", "!!").partition(":")[0]
        if tag == "!file":
            message, hint = "`!file` needs a path", "write `!file path/to/file`"
        else:
            message = f"the tag `{short[:100]}` is not supported"
            hint = "only `!file` is; put a text in quotes to keep it as text"
        self.log.add(message, self.place(mark), self.path(key), hint=hint)

    def not_json(self, problem: NotJson, mark: Any, key: str | None) -> None:
        """Refuse a number."""
        self.log.add(
            f"the value {problem}",
            self.place(mark),
            self.path(key),
            hint="put it in quotes to keep it as text",
        )

    def stop(self, mark: Any, message: str, hint: str) -> NoReturn:
        """Report a mistake and stop reading the file."""
        self.log.add(message, self.place(mark), self.path(None), hint=hint)
        raise _Stop

    def syntax(self, error: Any, text: str) -> None:
        """Report an error of the parser."""
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        place = None if mark is None else self.place(mark)
        position = getattr(error, "position", None)
        if place is None and isinstance(position, int):
            head = text[:position]
            place = Place(file=self.file, line=head.count("\n") + 1, column=position - head.rfind("\n"))
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read"
        hint = "check the indentation, the colons and the quotes in and above this line"
        if place is not None:
            lines = text.split("\n", place.line)[: place.line]
            if "${" in lines[-1] or "{{" in lines[-1]:
                hint = "put a text with `${…}` or `{{ … }}` in quotes"
            if any("\t" in line[: len(line) - len(line.lstrip())] for line in lines[-2:]):
                hint = "indent with spaces; YAML does not accept tabs there"
        self.log.add(f"the file is not YAML: {str(problem)[:200]}", place, self.path(None), hint=hint)

    def place(self, mark: Any) -> Place:
        """A mark of the parser as a place."""
        return Place(file=self.file, line=mark.line + 1, column=mark.column + 1)

    def path(self, key: str | None) -> Path:
        """The path of the current position in the structure."""
        path: Path = ()
        for depth, item in enumerate(self.open):
            inner = self.keys[depth + 1] if depth + 1 < len(self.open) else key
            if is_list(item.value):
                path = (path, len(item.value))
            elif inner is not None:
                path = (path, inner)
        return path
