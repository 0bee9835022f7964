"""Rules about secret inputs: they may only go where they are not stored, shown or sent.

A secret may be used in the `env_from` of a script, and passed to a secret input of a sub-workflow. `set` may pass it
on under another name, which is then secret too. Templates see a placeholder instead of the value, so a secret
cannot be combined with other text. A mistake names the place and the input, and never the value.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from failwell.errors.masking.known_values import SHORTEST
from failwell.files.mistakes import Mistake
from failwell.workflows.check.check_context import CheckContext, PlacedNode, TemplateUse
from failwell.workflows.check.declared_references import dotted
from failwell.workflows.check.findings import error, warning
from failwell.workflows.check.step_rules import child_of
from failwell.workflows.plan import GROUPS, ForEachSpec, SetSpec, WorkflowSpec
from failwell.workflows.template.names import whole_reference

Path = tuple[str, ...]


class Taint(NamedTuple):
    """A path that contains a secret, and where the secret came from."""

    path: Path
    source: str
    """The secret input."""
    via: str = ""
    """The step that passed it on, if any."""


def secrets(context: CheckContext) -> Iterator[Mistake]:
    """Find every use of a secret that would disclose it."""
    secret_inputs = [name for name, declared in context.plan.inputs.items() if declared.secret]
    if not secret_inputs:
        return
    yield from _short_defaults(context, secret_inputs)
    sources = [Taint(("workflow", "input", name), name) for name in secret_inputs]
    # A template may name an input alone, unless a step is called so.
    sources += [Taint((name,), name) for name in secret_inputs if name not in context.plan.nodes]
    taints = _spread(context, sources)
    for use in context.uses:
        yield from _use(context, use, taints)
    for placed in context.placed_nodes:
        yield from _forwarded(context, placed, secret_inputs)
    yield from _correlated(context, secret_inputs)


def _short_defaults(context: CheckContext, secret_inputs: Iterable[str]) -> Iterator[Mistake]:
    for name in secret_inputs:
        declared = context.plan.inputs[name]
        default = declared.default if declared.has_default else None
        if isinstance(default, str) and 0 < len(default) < SHORTEST:
            yield warning(
                declared.place,
                f"the default of the secret input `{name}` has fewer than {SHORTEST} characters",
                path=f"workflow.input.{name}.default",
                hint="so short a value is not masked in what steps print; use a longer one",
            )


class _Taints:
    """All paths in templates that may hold a secret, by their first name."""

    def __init__(self) -> None:
        self._by_root: dict[str, dict[Path, Taint]] = {}

    def add(self, taint: Taint) -> bool:
        """Add `taint`; `False` if it was there."""
        taints = self._by_root.setdefault(taint.path[0], {})
        if taint.path in taints:
            return False
        taints[taint.path] = taint
        return True

    def hit(self, path: Path) -> Taint | None:
        """The taint of a reference: of the path itself, of a parent, or of something inside it."""
        taints = self._by_root.get(path[0])
        if taints is None:
            return None
        for end in range(1, len(path) + 1):
            taint = taints.get(path[:end])
            if taint is not None:
                return taint
        return next((candidate for candidate in taints.values() if candidate.path[: len(path)] == path), None)


def _spread(context: CheckContext, sources: Iterable[Taint]) -> _Taints:
    """Follow the secrets through `set` steps and loops."""
    readers: dict[str, list[tuple[TemplateUse, PlacedNode]]] = {}
    # Bodies of two loops may have the same name, so nodes are identified by the object.
    places = {id(placed.node): placed for placed in context.placed_nodes}
    for use in context.uses:
        node = use.text.node
        if node is not None and isinstance(node.spec, SetSpec) and use.text.moment == "start":
            placed = places[id(node)]
            for root in {_full_path(context, use, reference.path)[0] for reference in use.references}:
                readers.setdefault(root, []).append((use, placed))
    loops: dict[str, list[tuple[Path, Taint]]] = {}
    for placed in context.placed_nodes:
        spec = placed.node.spec
        if isinstance(spec, ForEachSpec) and (source := dotted(spec.source)) is not None:
            root, *fields = source.path
            root = _item(root, placed.home) if root in placed.names else root
            item = Taint((_item(spec.variable, placed.home),), "", placed.node.name)
            loops.setdefault(root, []).append(((root, *fields), item))
    taints = _Taints()
    waiting = [taint for taint in sources if taints.add(taint)]
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


def _passed_on(
    context: CheckContext, use: TemplateUse, placed: PlacedNode, taints: _Taints
) -> Iterator[Taint]:
    hit = next(
        (
            taint
            for reference in use.references
            if (taint := taints.hit(_full_path(context, use, reference.path))) is not None
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


def _use(context: CheckContext, use: TemplateUse, taints: _Taints) -> Iterator[Mistake]:
    text = use.text
    node = text.node
    reported: set[str] = set()
    for reference in use.references:
        hit = taints.hit(_full_path(context, use, reference.path))
        if hit is None or hit.source in reported:
            continue
        reported.add(hit.source)
        if node is not None and text.moment == "start":
            is_mapped = isinstance(node.spec, WorkflowSpec) and ".input_mapping." in text.field
            if (is_mapped or isinstance(node.spec, SetSpec)) and whole_reference(text.template) is None:
                yield _mixed(use, hit)
                continue
            if isinstance(node.spec, SetSpec):
                continue
            if isinstance(node.spec, WorkflowSpec) and is_mapped:
                yield from _mapped(context, use, node.spec, hit)
                continue
        yield error(
            text.template.place,
            f"the secret `{_name(hit)}`{_via(hit)} would be used in `{text.field}`",
            path=text.field,
            hint="pass it to a script with `env_from`; other fields are stored or shown",
        )


def _mixed(use: TemplateUse, hit: Taint) -> Mistake:
    return error(
        use.text.template.place,
        f"`{use.text.field}` combines the secret `{_name(hit)}`{_via(hit)} with other text",
        path=use.text.field,
        hint="pass it on alone, as in `{{ name }}`, and combine it in the script",
    )


def _full_path(context: CheckContext, use: TemplateUse, path: Path) -> Path:
    """The path of a reference from the root of the context, with local names resolved."""
    text = use.text
    root, fields, home = path[0], path[1:], text.home
    if home is None:
        return path
    if root in text.names:
        if root == "output" and text.node is not None and text.moment != "start":
            return (home, *fields) if text.node.type in GROUPS else (home, "output", *fields)
        return (_item(root, home), *fields) if root in context.loop_variables else path
    if text.is_condition and text.template.is_plain and root not in context.plan.nodes:
        return _flat(context, root, home) + fields
    return path


def _flat(context: CheckContext, root: str, home: str) -> Path:
    """The path of a name in a condition without braces: `a_output`, `workflow_input`, or a key of the output."""
    if root == "workflow_input":
        return ("workflow", "input")
    node = root.removesuffix("_output")
    if node != root and node in context.plan.nodes:
        return (node, "output")
    return (root,) if root in ("workflow", "context") else (home, "output", root)


def _item(variable: str, home: str) -> str:
    # Many loops call their item `item`; the loop makes the name unique.
    return f"{variable}@{home}"


def _name(hit: Taint) -> str:
    return ".".join((hit.path[0].partition("@")[0], *hit.path[1:]))


def _via(hit: Taint) -> str:
    return f" (from the input `{hit.source}`)" if hit.via else ""


def _mapped(context: CheckContext, use: TemplateUse, spec: WorkflowSpec, hit: Taint) -> Iterator[Mistake]:
    field = use.text.field.partition(".input_mapping.")[2]
    name = field.partition(".")[0].partition("[")[0]
    child = child_of(context, spec)
    if child is None:
        if not spec.path.is_plain:
            yield error(
                use.text.template.place,
                f"the secret `{_name(hit)}` goes to a sub-workflow that is only known at run time",
                path=use.text.field,
                hint="name the file without a template, so that it can be checked",
            )
        return
    declared = child.inputs.get(name)
    if field != name or declared is None or not declared.secret:
        yield error(
            use.text.template.place,
            f"the secret `{_name(hit)}`{_via(hit)} goes to the input `{name}` of `{spec.path.text}`,"
            " which is not secret",
            path=use.text.field,
            hint=f"give the input `{name}` there `secret: true`",
        )


def _forwarded(context: CheckContext, placed: PlacedNode, secret_inputs: list[str]) -> Iterator[Mistake]:
    """Without `input_mapping`, a sub-workflow gets all inputs of its parent."""
    spec = placed.node.spec
    if not isinstance(spec, WorkflowSpec) or spec.input_mapping is not None:
        return
    child = child_of(context, spec)
    path = f"{placed.path}.workflow"
    if child is None:
        if not spec.path.is_plain:
            yield warning(
                placed.node.place,
                f"`{placed.node.name}` passes the secret `{secret_inputs[0]}` to a sub-workflow that is only known at run"
                " time",
                path=path,
                hint="list its inputs in `input_mapping`",
            )
        return
    for name in secret_inputs:
        declared = child.inputs.get(name)
        if declared is not None and not declared.secret:
            yield error(
                placed.node.place,
                f"the secret `{name}` goes to the input `{name}` of `{spec.path.text}`, which is not secret",
                path=path,
                hint=f"give the input `{name}` there `secret: true`, or list its inputs in `input_mapping`",
            )


def _correlated(context: CheckContext, secret_inputs: list[str]) -> Iterator[Mistake]:
    block = context.plan.notifications
    for index, name in enumerate(() if block is None else block.correlation):
        if name.removeprefix("workflow.input.").removesuffix("?") in secret_inputs:
            path = f"workflow.notifications.correlation[{index}]"
            message = f"the secret `{name}` would be sent with every notification"
            yield error(None, message, path=path, hint="remove it")
