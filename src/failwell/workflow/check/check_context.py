"""What every rule looks at, and the two ways it speaks: an error or a warning."""

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from failwell.files.suggestions import Near
from failwell.workflow.check.control_flow import Flow
from failwell.workflow.check.raisable_kinds import Raisable, Universe
from failwell.workflow.check.template_texts import TemplateText, loop_names, texts_of_node, texts_of_workflow
from failwell.workflow.compile.compiler import PartialPlan
from failwell.workflow.plan import ForEachSpec, Member, Node, ParallelSpec, Plan
from failwell.workflow.template.references import Reference, references, simple_references
from failwell.workflow.template.render import syntax_mistake


class Placed(NamedTuple):
    """A node and where it stands."""

    node: Node
    home: str
    """The top-level node that runs it: itself, or the outermost group around it."""
    path: str
    """How a message names its place."""
    names: frozenset[str]
    """The names that the loops around it add."""


class Use(NamedTuple):
    """A template and the references in it."""

    text: TemplateText
    references: Collection[Reference]


class CheckContext:
    """One plan under check, with what the rules share.

    Of a file with mistakes in its shape the plan is partial. Rules ask `knows` and `is_complete` before they
    report something that may follow from such a mistake.
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
        self._texts_read: dict[tuple[str, str | None, bool], tuple[Collection[Reference], str | None]] = {}

    def knows(self, topic: str) -> bool:
        """Whether everything about `topic` could be read; see `step_index`."""
        return self.partial is None or topic not in self.partial.unknown_topics

    def is_complete(self, node: Node) -> bool:
        """Whether everything about one step could be read."""
        partial = self.partial
        return partial is None or not (node.name in partial.incomplete or node.name in partial.unreadable)

    @cached_property
    def near(self) -> Near:
        """Finds the name that was probably meant."""
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
    def everything(self) -> list[Placed]:
        """Every node, bodies of loops too."""
        placed: list[Placed] = []
        for node in self.plan.nodes.values():
            if node.name in self.unreadable:
                continue
            if node.name in self.bodies and node.name in self.flow.owner:
                # It is listed, and a loop runs it by its name; it is checked there.
                continue
            inner, path = node, node.name
            names = self._names_around(node.name)
            home = self.flow.outermost(node.name)
            placed.append(Placed(inner, home, path, names))
            while isinstance(inner.spec, ForEachSpec):
                names |= loop_names(inner.spec)
                inner = inner.spec.body
                if inner.name in self.unreadable:
                    break
                path = f"{path}.agent"
                placed.append(Placed(inner, home, path, names))
        return placed

    @cached_property
    def uses(self) -> list[Use]:
        """Every template that is not plain, with what it refers to. One that cannot be parsed is left out."""
        return [Use(text, refs) for text in self.texts if (refs := self._read(text)[0])]

    @cached_property
    def texts(self) -> list[TemplateText]:
        """Every text that the engine reads as a template or a condition."""
        texts = [
            text
            for placed in self.everything
            for text in texts_of_node(placed.node, placed.home, placed.path, placed.names)
        ]
        texts += texts_of_workflow(self.plan)
        return [text for text in texts if text.is_condition or not text.template.is_plain]

    @cached_property
    def loop_variables(self) -> frozenset[str]:
        """The names of the items of all loops."""
        return frozenset(spec.variable for spec in self._loops.values())

    def syntax_mistake(self, text: TemplateText) -> str | None:
        """What keeps a text from being read, in words without a piece of it."""
        return self._read(text)[1]

    def _read(self, text: TemplateText) -> tuple[Collection[Reference], str | None]:
        """What a text refers to, and what is wrong with it. Each text is read once."""
        template, condition = text.template, text.is_condition
        key = (template.text, template.folder, condition)
        result = self._texts_read.get(key)
        if result is None:
            simple = None if condition and template.is_plain else simple_references(template.text)
            if simple is not None:
                result = (simple, None)
            else:
                mistake = syntax_mistake(template, condition=condition)
                result = (
                    (references(template, condition=condition), None)
                    if mistake is None
                    else ((), str(mistake))
                )
            self._texts_read[key] = result
        return result

    def universe(self, can: Raisable, named: Iterable[str]) -> Universe:
        """Every kind that can come out of a node that can raise this and whose routes name those."""
        key = (can, tuple(named))
        universe = self._universes.get(key)
        if universe is None:
            universe = self._universes[key] = Universe(can, key[1], self.plan.kinds)
        return universe

    def member(self, group: str, spec: ParallelSpec, name: str) -> Member | None:
        """The member of a group that is called `name`."""
        members = self._members.get(group)
        if members is None:
            members = self._members[group] = {member.name: member for member in spec.members}
        return members.get(name)

    def _names_around(self, name: str) -> frozenset[str]:
        """The names of the loops that `name` is inside of."""
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
