"""Secrets: where they may go, and everywhere that they come to by way of something else.

A secret input may be read by the `env_from` of a script, and handed to an input of a sub-workflow that
is secret as well. `set` may pass it on under another name, and that is then a secret too. Templates see
a mark in its place, so nothing can be made of it: a text that holds more than the secret alone would
hold the mark. Anything else would put it into a text that is stored, shown or sent. A mistake names
the place and the name, and never a value.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from failwell.files.mistakes import Mistake
from failwell.workflow.check.check_context import CheckContext, Placed, Use
from failwell.workflow.check.declared_references import dotted
from failwell.workflow.check.step_rules import child_of
from failwell.workflow.findings import error, warning
from failwell.workflow.plan import GROUPS, ForEachSpec, SetSpec, WorkflowSpec
from failwell.workflow.template.references import whole_reference

Path = tuple[str, ...]


class Taint(NamedTuple):
    """Something that holds a secret, and how the secret came there."""

    path: Path
    source: str
    """The input it began with."""
    via: str = ""
    """The step before, when it came by way of one."""


def secrets(context: CheckContext) -> Iterator[Mistake]:
    """Every use of a secret in a place that does not keep it."""
    hidden = [name for name, declared in context.plan.inputs.items() if declared.secret]
    if not hidden:
        return
    taints = _spread(context, [Taint(("workflow", "input", name), name) for name in hidden])
    for use in context.uses:
        yield from _use(context, use, taints)
    for placed in context.everything:
        yield from _forwarded(context, placed, hidden)
    yield from _correlated(context, hidden)


class _Taints:
    """Everything tainted, found by the first name of its path."""

    def __init__(self) -> None:
        self._by_root: dict[str, dict[Path, Taint]] = {}

    def add(self, taint: Taint) -> bool:
        """Take `taint` in; `False` if it was known."""
        taints = self._by_root.setdefault(taint.path[0], {})
        if taint.path in taints:
            return False
        taints[taint.path] = taint
        return True

    def hit(self, path: Path) -> Taint | None:
        """What a reference touches: the secret itself, something in it, or what it is in."""
        taints = self._by_root.get(path[0])
        if taints is None:
            return None
        for end in range(1, len(path) + 1):
            taint = taints.get(path[:end])
            if taint is not None:
                return taint
        return next((candidate for candidate in taints.values() if candidate.path[: len(path)] == path), None)


def _spread(context: CheckContext, first: Iterable[Taint]) -> _Taints:
    """Follow the secrets through `set` steps and loops until nothing new turns up."""
    readers: dict[str, list[tuple[Use, Placed]]] = {}
    # Two loops may call their bodies alike, so a node is known by itself.
    places = {id(placed.node): placed for placed in context.everything}
    for use in context.uses:
        node = use.text.node
        if node is not None and isinstance(node.spec, SetSpec) and use.text.moment == "start":
            placed = places[id(node)]
            for root in {_seen(context, use, reference.path)[0] for reference in use.references}:
                readers.setdefault(root, []).append((use, placed))
    loops: dict[str, list[tuple[Path, Taint]]] = {}
    for placed in context.everything:
        spec = placed.node.spec
        if isinstance(spec, ForEachSpec) and (source := dotted(spec.source)) is not None:
            root, *rest = source.path
            root = _item(root, placed.home) if root in placed.names else root
            item = Taint((_item(spec.variable, placed.home),), "", placed.node.name)
            loops.setdefault(root, []).append(((root, *rest), item))
    taints = _Taints()
    waiting = [taint for taint in first if taints.add(taint)]
    while waiting:
        root = waiting.pop().path[0]
        for use, placed in readers.get(root, ()):
            waiting += (
                further for further in _passed_on(context, use, placed, taints) if taints.add(further)
            )
        for path, item in loops.get(root, ()):
            hit = taints.hit(path)
            if hit is not None:
                further = Taint(item.path, hit.source, item.via)
                waiting += (further,) if taints.add(further) else ()
    return taints


def _passed_on(context: CheckContext, use: Use, placed: Placed, taints: _Taints) -> Iterator[Taint]:
    hit = next(
        (
            taint
            for reference in use.references
            if (taint := taints.hit(_seen(context, use, reference.path))) is not None
        ),
        None,
    )
    if hit is None:
        return
    node = placed.node
    if placed.home == node.name:
        field = use.text.field.removeprefix(f"{placed.path}.")
        key = field.removeprefix("values.").partition(".")[0].partition("[")[0]
        path: Path = (node.name, "output", key) if field.startswith("values.") else (node.name, "output")
    else:
        path = (placed.home, "outputs")
    yield Taint(path, hit.source, node.name)


def _use(context: CheckContext, use: Use, taints: _Taints) -> Iterator[Mistake]:
    text = use.text
    node = text.node
    reported: set[str] = set()
    for reference in use.references:
        hit = taints.hit(_seen(context, use, reference.path))
        if hit is None or hit.source in reported:
            continue
        reported.add(hit.source)
        if node is not None and text.moment == "start":
            is_handed_on = isinstance(node.spec, WorkflowSpec) and ".input_mapping." in text.field
            if (is_handed_on or isinstance(node.spec, SetSpec)) and whole_reference(text.template) is None:
                yield _mixed(use, hit)
                continue
            if isinstance(node.spec, SetSpec):
                continue
            if isinstance(node.spec, WorkflowSpec) and is_handed_on:
                yield from _mapped(context, use, node.spec, hit)
                continue
        yield error(
            text.template.place,
            f"the secret `{_shown(hit)}`{_via(hit)} would come into `{text.field}`",
            path=text.field,
            hint="give it to a script with `env_from`; nothing else keeps it",
        )


def _mixed(use: Use, hit: Taint) -> Mistake:
    return error(
        use.text.template.place,
        f"`{use.text.field}` would make something of the secret `{_shown(hit)}`{_via(hit)}",
        path=use.text.field,
        hint="hand it on alone, as in `{{ name }}`, and let the script that gets it make what it needs",
    )


def _seen(context: CheckContext, use: Use, path: Path) -> Path:
    """A reference under the one name that it is kept by here, whatever the place calls it."""
    text = use.text
    root, rest, home = path[0], path[1:], text.home
    if home is None:
        return path
    if root in text.names:
        if root == "output" and text.node is not None and text.moment != "start":
            return (home, *rest) if text.node.type in GROUPS else (home, "output", *rest)
        return (_item(root, home), *rest) if root in context.loop_variables else path
    if text.is_condition and text.template.is_plain and root not in context.plan.nodes:
        return _flat(context, root, home) + rest
    return path


def _flat(context: CheckContext, root: str, home: str) -> Path:
    """What a name of a bare condition stands for: `a_output`, `workflow_input`, or a key of the output."""
    if root == "workflow_input":
        return ("workflow", "input")
    node = root.removesuffix("_output")
    if node != root and node in context.plan.nodes:
        return (node, "output")
    return (root,) if root in ("workflow", "context") else (home, "output", root)


def _item(variable: str, home: str) -> str:
    # Many loops call their item `item`; the one that runs it tells them apart.
    return f"{variable}@{home}"


def _shown(hit: Taint) -> str:
    return ".".join((hit.path[0].partition("@")[0], *hit.path[1:]))


def _via(hit: Taint) -> str:
    return f" (from the input `{hit.source}`)" if hit.via else ""


def _mapped(context: CheckContext, use: Use, spec: WorkflowSpec, hit: Taint) -> Iterator[Mistake]:
    field = use.text.field.partition(".input_mapping.")[2]
    name = field.partition(".")[0].partition("[")[0]
    child = child_of(context, spec)
    if child is None:
        if not spec.path.is_plain:
            yield error(
                use.text.template.place,
                f"the secret `{_shown(hit)}` goes to a sub-workflow that is chosen while the run goes on",
                path=use.text.field,
                hint="name the file without a template, so that it can be checked",
            )
        return
    declared = child.inputs.get(name)
    if field != name or (declared is not None and not declared.secret):
        yield error(
            use.text.template.place,
            f"the secret `{_shown(hit)}`{_via(hit)} goes to the input `{name}` of `{spec.path.text}`,"
            " which is not secret",
            path=use.text.field,
            hint=f"give the input `{name}` there `secret: true`",
        )


def _forwarded(context: CheckContext, placed: Placed, hidden: list[str]) -> Iterator[Mistake]:
    """Without a mapping the sub-workflow gets the inputs as they are."""
    spec = placed.node.spec
    if not isinstance(spec, WorkflowSpec) or spec.input_mapping is not None:
        return
    child = child_of(context, spec)
    path = f"{placed.path}.workflow"
    if child is None:
        if not spec.path.is_plain:
            yield warning(
                placed.node.place,
                f"`{placed.node.name}` hands the secret `{hidden[0]}` to a sub-workflow that is chosen while the run"
                " goes on",
                path=path,
                hint="say with `input_mapping` what it gets",
            )
        return
    for name in hidden:
        declared = child.inputs.get(name)
        if declared is not None and not declared.secret:
            yield error(
                placed.node.place,
                f"the secret `{name}` goes to the input `{name}` of `{spec.path.text}`, which is not secret",
                path=path,
                hint=f"give the input `{name}` there `secret: true`, or say with `input_mapping` what it gets",
            )


def _correlated(context: CheckContext, hidden: list[str]) -> Iterator[Mistake]:
    block = context.plan.notifications
    for index, name in enumerate(() if block is None else block.correlation):
        if name.removeprefix("workflow.input.").removesuffix("?") in hidden:
            path = f"workflow.notifications.correlation[{index}]"
            message = f"the secret `{name}` would be sent with every notification"
            yield error(None, message, path=path, hint="take it out")
