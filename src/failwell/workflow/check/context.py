"""What every rule looks at, and the two ways it speaks: an error or a warning."""

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from failwell.files.mistakes import Mistake
from failwell.files.tree import Place
from failwell.workflow.check.control_flow import Flow
from failwell.workflow.check.raisable_kinds import Raisable, Universe
from failwell.workflow.check.template_texts import Text, loop_names, texts_of_node, texts_of_workflow
from failwell.workflow.compile.compiler import PartialPlan
from failwell.workflow.plan import ForEachSpec, Member, Node, ParallelSpec, Plan
from failwell.workflow.template.references import Reference, references, simple_references
from failwell.workflow.template.render import syntax_mistake


def error(
    place: Place | None, message: str, *, path: str = "", hint: str = "", also: Place | None = None
) -> Mistake:
    """A mistake that keeps the workflow from running."""
    return Mistake(message=message, place=place, path=path, hint=hint, also=() if also is None else (also,))


def warning(
    place: Place | None, message: str, *, path: str = "", hint: str = "", also: Place | None = None
) -> Mistake:
    """Something that will probably not do what was meant."""
    further = () if also is None else (also,)
    return Mistake(message=message, place=place, path=path, hint=hint, also=further, severity="warning")


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

    text: Text
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
        self.near = Near()
        self._members: dict[str, dict[str, Member]] = {}
        self._universes: dict[tuple[Raisable, tuple[str, ...]], Universe] = {}
        self._texts_read: dict[tuple[str, str | None, bool], tuple[Collection[Reference], str | None]] = {}

    def knows(self, topic: str) -> bool:
        """Whether everything about `topic` could be read; see `step_index`."""
        return self.partial is None or topic not in self.partial.unsure

    def is_complete(self, node: Node) -> bool:
        """Whether everything about one step could be read."""
        partial = self.partial
        return partial is None or not (node.name in partial.incomplete or node.name in partial.unreadable)

    @cached_property
    def bodies(self) -> dict[str, str]:
        """Body of a `for_each` → its group."""
        found: dict[str, str] = {}
        for node in self.plan.nodes.values():
            at = node
            while isinstance(at.spec, ForEachSpec):
                found.setdefault(at.spec.body.name, node.name)
                at = at.spec.body
        return found

    @cached_property
    def everything(self) -> list[Placed]:
        """Every node, bodies of loops too."""
        found: list[Placed] = []
        for node in self.plan.nodes.values():
            if node.name in self.unreadable:
                continue
            if node.name in self.bodies and node.name in self.flow.owner:
                # It is listed, and a loop runs it by its name; it is checked there.
                continue
            at, path = node, node.name
            names = self._names_around(node.name)
            home = self.flow.outermost(node.name)
            found.append(Placed(at, home, path, names))
            while isinstance(at.spec, ForEachSpec):
                names |= loop_names(at.spec)
                at = at.spec.body
                if at.name in self.unreadable:
                    break
                path = f"{path}.agent"
                found.append(Placed(at, home, path, names))
        return found

    @cached_property
    def uses(self) -> list[Use]:
        """Every template that is not plain, with what it refers to. One that cannot be parsed is left out."""
        return [Use(text, found) for text in self.texts if (found := self._read(text)[0])]

    @cached_property
    def texts(self) -> list[Text]:
        """Every text that the engine reads as a template or a condition."""
        found = [
            text
            for placed in self.everything
            for text in texts_of_node(placed.node, placed.home, placed.path, placed.names)
        ]
        found += texts_of_workflow(self.plan)
        return [text for text in found if text.is_condition or not text.template.is_plain]

    @cached_property
    def loop_variables(self) -> frozenset[str]:
        """The names of the items of all loops."""
        return frozenset(spec.variable for spec in self._loops.values())

    def syntax_mistake(self, text: Text) -> str | None:
        """What keeps a text from being read, in words without a piece of it."""
        return self._read(text)[1]

    def _read(self, text: Text) -> tuple[Collection[Reference], str | None]:
        """What a text refers to, and what is wrong with it. Each text is read once."""
        template, condition = text.template, text.is_condition
        key = (template.text, template.folder, condition)
        found = self._texts_read.get(key)
        if found is None:
            simple = None if condition and template.is_plain else simple_references(template.text)
            if simple is not None:
                found = (simple, None)
            else:
                wrong = syntax_mistake(template, condition=condition)
                found = (
                    (references(template, condition=condition), None) if wrong is None else ((), str(wrong))
                )
            self._texts_read[key] = found
        return found

    def universe(self, can: Raisable, named: Iterable[str]) -> Universe:
        """Every kind that can come out of a node that can raise this and whose routes name those."""
        key = (can, tuple(named))
        found = self._universes.get(key)
        if found is None:
            found = self._universes[key] = Universe(can, key[1], self.plan.kinds)
        return found

    def member(self, group: str, spec: ParallelSpec, name: str) -> Member | None:
        """The member of a group that is called `name`."""
        found = self._members.get(group)
        if found is None:
            found = self._members[group] = {member.name: member for member in spec.members}
        return found.get(name)

    def _names_around(self, name: str) -> frozenset[str]:
        """The names of the loops that `name` is inside of."""
        owner = self.flow.owner
        names: frozenset[str] = frozenset()
        seen = {name}
        while (around := owner.get(name)) is not None and around not in seen:
            seen.add(around)
            group = self._loops.get(around)
            names |= frozenset() if group is None else loop_names(group)
            name = around
        return names

    @cached_property
    def _loops(self) -> dict[str, ForEachSpec]:
        found: dict[str, ForEachSpec] = {}
        for node in self.plan.nodes.values():
            at = node
            while isinstance(at.spec, ForEachSpec):
                found.setdefault(at.name, at.spec)
                at = at.spec.body
        return found


class Near:
    """Finds the name that was probably meant.

    It stops after a while: searching for every mistake of a file that is full of them would take time
    that grows with its square.
    """

    def __init__(self, most: int = 40) -> None:
        self._left = most
        self._known: dict[tuple[str, str], str | None] = {}

    def __call__(self, name: str, valid: Collection[str], what: str) -> str | None:
        """The one of `valid` that is spelled most like `name`; `what` says which names `valid` holds."""
        key = (name, what)
        if key not in self._known:
            if self._left <= 0:
                return None
            self._left -= 1
            from difflib import get_close_matches

            # Names of another length are never close, and leaving them out is most of the work.
            likely = [one for one in valid if abs(len(one) - len(name)) <= max(2, len(name) // 2)]
            found = get_close_matches(name, likely[:2000], n=1, cutoff=0.6)
            self._known[key] = found[0] if found else None
        return self._known[key]


def choices(near: str | None, valid: Collection[str], otherwise: str) -> str:
    """The hint for a name that does not exist: the near one, else the few there are, else `otherwise`."""
    if near is not None:
        return f"did you mean `{near}`?"
    if 0 < len(valid) <= 8:
        return f"write one of {', '.join(f'`{name}`' for name in valid)}"
    return otherwise
