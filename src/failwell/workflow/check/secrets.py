"""Secrets: where they may go, and everywhere that they come to by way of something else.

A secret input may be read by `env_from` and by the `stdin` of a script, and handed to an input of a
sub-workflow that is secret as well. `set` may pass it on; what it makes of it is then a secret too.
Anything else would put it into a text that is stored, shown or sent. A mistake names the place and
the name, and never a value.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from failwell.workflow.check.children import child_of
from failwell.workflow.check.dotted import dotted
from failwell.workflow.check.look import Look, Placed, Use, error, warning
from failwell.workflow.mistakes import Mistake
from failwell.workflow.plan import ForEachSpec, Node, SetSpec, WorkflowSpec

Path = tuple[str, ...]


class Taint(NamedTuple):
    """Something that holds a secret, and how the secret came there."""

    path: Path
    source: str
    """The input it began with."""
    via: str = ""
    """The step before, when it came by way of one."""


def secrets(look: Look) -> Iterator[Mistake]:
    """Every use of a secret in a place that does not keep it."""
    hidden = [name for name, one in look.plan.inputs.items() if one.secret]
    if not hidden:
        return
    taints = _spread(look, [Taint(("workflow", "input", name), name) for name in hidden])
    for use in look.uses:
        yield from _use(look, use, taints)
    for placed in look.everything:
        yield from _forwarded(look, placed, hidden)
    yield from _correlated(look, hidden)


class _Taints:
    """Everything tainted, found by the first name of its path."""

    def __init__(self) -> None:
        self._by_root: dict[str, dict[Path, Taint]] = {}

    def add(self, taint: Taint) -> bool:
        """Take `taint` in; `False` if it was known."""
        known = self._by_root.setdefault(taint.path[0], {})
        if taint.path in known:
            return False
        known[taint.path] = taint
        return True

    def hit(self, path: Path) -> Taint | None:
        """What a reference touches: the secret itself, something in it, or what it is in."""
        known = self._by_root.get(path[0])
        if known is None:
            return None
        for end in range(1, len(path) + 1):
            found = known.get(path[:end])
            if found is not None:
                return found
        return next((one for one in known.values() if one.path[: len(path)] == path), None)


def _spread(look: Look, first: Iterable[Taint]) -> _Taints:
    """Follow the secrets through `set` steps and loops until nothing new turns up."""
    readers: dict[str, list[tuple[Use, Placed]]] = {}
    by_path = {placed.path: placed for placed in look.everything}
    homes = {placed.node.name: placed for placed in look.everything}
    for use in look.uses:
        node = use.text.node
        if node is not None and isinstance(node.spec, SetSpec) and use.text.moment == "start":
            placed = homes[node.name]
            for root in {reference.path[0] for reference in use.references}:
                readers.setdefault(root, []).append((use, placed))
    loops: dict[str, list[tuple[Node, ForEachSpec]]] = {}
    for placed in by_path.values():
        spec = placed.node.spec
        if isinstance(spec, ForEachSpec) and (source := dotted(spec.source)) is not None:
            loops.setdefault(source.path[0], []).append((placed.node, spec))
    taints = _Taints()
    waiting = [taint for taint in first if taints.add(taint)]
    while waiting:
        root = waiting.pop().path[0]
        for use, placed in readers.get(root, ()):
            waiting += (made for made in _passed_on(use, placed, taints) if taints.add(made))
        for node, spec in loops.get(root, ()):
            source = dotted(spec.source)
            hit = None if source is None else taints.hit(source.path)
            if hit is not None:
                made = Taint((spec.variable,), hit.source, node.name)
                waiting += (made,) if taints.add(made) else ()
    return taints


def _passed_on(use: Use, placed: Placed, taints: _Taints) -> Iterator[Taint]:
    hit = next((found for one in use.references if (found := taints.hit(one.path)) is not None), None)
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


def _use(look: Look, use: Use, taints: _Taints) -> Iterator[Mistake]:
    text = use.text
    node = text.node
    told: set[str] = set()
    for reference in use.references:
        hit = taints.hit(reference.path)
        if hit is None or hit.source in told or _is_foreign(look, use, hit):
            continue
        told.add(hit.source)
        if node is not None and text.moment == "start":
            field = text.field.rpartition(f"{node.name}.")[2] if "." in text.field else text.field
            if node.type == "script" and field.endswith("stdin"):
                continue
            if isinstance(node.spec, SetSpec):
                continue
            if isinstance(node.spec, WorkflowSpec) and ".input_mapping." in text.field:
                yield from _mapped(look, use, node.spec, hit)
                continue
        yield error(
            text.template.place,
            f"the secret `{'.'.join(hit.path)}`{_via(hit)} would come into `{text.field}`",
            path=text.field,
            hint="give it to a script with `env_from` or `stdin`; nothing else keeps it",
        )


def _is_foreign(look: Look, use: Use, hit: Taint) -> bool:
    """Whether the name is the item of a loop that this text does not stand in."""
    root = hit.path[0]
    return root in look.loop_variables and root not in use.text.names


def _via(hit: Taint) -> str:
    return f" (from the input `{hit.source}`)" if hit.via else ""


def _mapped(look: Look, use: Use, spec: WorkflowSpec, hit: Taint) -> Iterator[Mistake]:
    field = use.text.field.partition(".input_mapping.")[2]
    name = field.partition(".")[0].partition("[")[0]
    child = child_of(look, spec)
    if child is None:
        if not spec.path.is_plain:
            yield error(
                use.text.template.place,
                f"the secret `{'.'.join(hit.path)}` goes to a sub-workflow that is chosen while the run goes on",
                path=use.text.field,
                hint="name the file without a template, so that it can be checked",
            )
        return
    declared = child.inputs.get(name)
    if field != name or (declared is not None and not declared.secret):
        yield error(
            use.text.template.place,
            f"the secret `{'.'.join(hit.path)}`{_via(hit)} goes to the input `{name}` of `{spec.path.text}`,"
            " which is not secret",
            path=use.text.field,
            hint=f"give the input `{name}` there `secret: true`",
        )


def _forwarded(look: Look, placed: Placed, hidden: list[str]) -> Iterator[Mistake]:
    """Without a mapping the sub-workflow gets the inputs as they are."""
    spec = placed.node.spec
    if not isinstance(spec, WorkflowSpec) or spec.input_mapping is not None:
        return
    child = child_of(look, spec)
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


def _correlated(look: Look, hidden: list[str]) -> Iterator[Mistake]:
    block = look.plan.notifications
    for index, name in enumerate(() if block is None else block.correlation):
        if name.removeprefix("workflow.input.").removesuffix("?") in hidden:
            path = f"workflow.notifications.correlation[{index}]"
            message = f"the secret `{name}` would be sent with every notification"
            yield error(None, message, path=path, hint="take it out")
