"""The plan under check, and what the rules derive from it once."""

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from failwell.files.suggestions import Near
from failwell.workflows.check.control_flow import Flow
from failwell.workflows.check.raisable_kinds import Raisable, Universe
from failwell.workflows.check.template_texts import TemplateText, loop_names, texts_of_node, texts_of_workflow
from failwell.workflows.compile.compiler import PartialPlan
from failwell.workflows.plan import ForEachSpec, Member, Node, ParallelSpec, Plan
from failwell.workflows.template.names import Reference, simple_references
from failwell.workflows.template.render import SyntaxMistake, syntax_mistake


class PlacedNode(NamedTuple):
    """A node with its position in the plan."""

    node: Node
    home: str
    """The top-level node that runs it: itself, or the outermost group around it."""
    path: str
    """Its path in messages."""
    names: frozenset[str]
    """The names that the enclosing loops add."""


class TemplateUse(NamedTuple):
    """A template and the references in it."""

    text: TemplateText
    references: Collection[Reference]


class CheckContext:
    """One plan under check, with everything that several rules use.

    The plan of a file with mistakes of shape is partial. Rules call `knows` and `is_complete` before they report
    something that may only be a consequence of such a mistake.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        as_root: bool,
        children: Mapping[str, Plan],
        available: Collection[str],
        partial: PartialPlan | None = None,
    ) -> None:
        self.plan = plan
        self.partial = partial
        self.unreadable: frozenset[str] = frozenset() if partial is None else partial.unreadable
        self.as_root = as_root
        self.children = children
        self.available = available
        self.flow = Flow(plan)
        self._members: dict[str, dict[str, Member]] = {}
        self._universes: dict[tuple[Raisable, tuple[str, ...]], Universe] = {}
        self._texts_read: dict[
            tuple[str, str | None, bool, str | None], tuple[Collection[Reference], SyntaxMistake | None]
        ] = {}

    def knows(self, topic: str) -> bool:
        """Whether everything about `topic` could be read; see `step_index`."""
        return self.partial is None or topic not in self.partial.unknown_topics

    def is_complete(self, node: Node) -> bool:
        """Whether everything about one step could be read."""
        partial = self.partial
        return partial is None or not (node.name in partial.incomplete or node.name in partial.unreadable)

    @cached_property
    def near(self) -> Near:
        """Finds the valid name that is spelled most like a wrong one."""
        return Near()

    @cached_property
    def bodies(self) -> dict[str, str]:
        """Body of a `for_each` → its group."""
        groups: dict[str, str] = {}
        for node in self.plan.nodes.values():
            inner = node
            while isinstance(inner.spec, ForEachSpec):
                groups.setdefault(inner.spec.body.name, node.name)
                inner = inner.spec.body
        return groups

    @cached_property
    def placed_nodes(self) -> list[PlacedNode]:
        """Every node, including the bodies of loops."""
        placed: list[PlacedNode] = []
        for node in self.plan.nodes.values():
            if node.name in self.unreadable:
                continue
            if node.name in self.bodies and node.name in self.flow.owner:
                # A loop runs it by name, so it is checked as the body of that loop.
                continue
            inner, path = node, node.name
            names = self._names_around(node.name)
            home = self.flow.outermost(node.name)
            placed.append(PlacedNode(inner, home, path, names))
            while isinstance(inner.spec, ForEachSpec):
                names |= loop_names(inner.spec)
                inner = inner.spec.body
                if inner.name in self.unreadable:
                    break
                path = f"{path}.agent"
                placed.append(PlacedNode(inner, home, path, names))
        return placed

    @cached_property
    def uses(self) -> list[TemplateUse]:
        """Every template with references. Templates that cannot be parsed are left out."""
        return [TemplateUse(text, refs) for text in self.texts if (refs := self._read(text)[0])]

    @cached_property
    def texts(self) -> list[TemplateText]:
        """Every template and condition."""
        texts = [
            text
            for placed in self.placed_nodes
            for text in texts_of_node(placed.node, placed.home, placed.path, placed.names)
        ]
        texts += texts_of_workflow(self.plan)
        return [text for text in texts if text.is_condition or not text.template.is_plain]

    @cached_property
    def loop_variables(self) -> frozenset[str]:
        """The item names of all loops."""
        return frozenset(spec.variable for spec in self._loops.values())

    def syntax_mistake(self, text: TemplateText) -> SyntaxMistake | None:
        """Why a text cannot be parsed, without quoting it."""
        return self._read(text)[1]

    def _read(self, text: TemplateText) -> tuple[Collection[Reference], SyntaxMistake | None]:
        """The references of a text, and its syntax mistake. Each text is parsed once."""
        template, condition = text.template, text.is_condition
        key = (template.text, template.folder, condition, template.written)
        result = self._texts_read.get(key)
        if result is None:
            simple = None if condition and template.is_plain else simple_references(template.text)
            if simple is not None:
                result = (simple, None)
            else:
                from failwell.workflows.template.references import references  # it loads Jinja2

                mistake = syntax_mistake(template, condition=condition)
                result = (
                    (references(template, condition=condition), None) if mistake is None else ((), mistake)
                )
            self._texts_read[key] = result
        return result

    def universe(self, raisable_kinds: Raisable, route_kinds: Iterable[str]) -> Universe:
        """Every kind that a node can raise; `route_kinds` are those that its routes name."""
        key = (raisable_kinds, tuple(route_kinds))
        universe = self._universes.get(key)
        if universe is None:
            universe = self._universes[key] = Universe(raisable_kinds, key[1], self.plan.kinds)
        return universe

    def member(self, group: str, spec: ParallelSpec, name: str) -> Member | None:
        """The member `name` of a group."""
        members = self._members.get(group)
        if members is None:
            members = self._members[group] = {member.name: member for member in spec.members}
        return members.get(name)

    def _names_around(self, name: str) -> frozenset[str]:
        """The names that the loops around `name` add."""
        owner = self.flow.owner
        names: frozenset[str] = frozenset()
        visited = {name}
        while (around := owner.get(name)) is not None and around not in visited:
            visited.add(around)
            group = self._loops.get(around)
            names |= frozenset() if group is None else loop_names(group)
            name = around
        return names

    @cached_property
    def _loops(self) -> dict[str, ForEachSpec]:
        loops: dict[str, ForEachSpec] = {}
        for node in self.plan.nodes.values():
            inner = node
            while isinstance(inner.spec, ForEachSpec):
                loops.setdefault(inner.name, inner.spec)
                inner = inner.spec.body
        return loops
