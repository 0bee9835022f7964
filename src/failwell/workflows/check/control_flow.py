"""The control flow of a plan: which nodes a run can reach, and what has certainly happened before.

Every node has up to three vertices: started, succeeded, failed. If the vertex "`a` succeeded" dominates another
one, then `a.output` exists there: a later failure of `a` would be another path, around that vertex.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from failwell.workflows.graph.model import is_same_step
from failwell.workflows.plan import (
    END,
    ForEachSpec,
    GateSpec,
    Node,
    ParallelSpec,
    Plan,
    QuestionsSpec,
    Route,
    TerminateSpec,
)


class Dominators:
    """The dominator tree of the part of a workflow's graph that its root reaches."""

    def __init__(self, successors: Sequence[Sequence[int]], root: int) -> None:
        self._number, order, parents = _walk(successors, root)
        predecessors: list[list[int]] = [[] for _ in order]
        for vertex, number in enumerate(self._number):
            if number >= 0:
                for target in successors[vertex]:
                    predecessors[self._number[target]].append(number)
        self._predecessors = predecessors
        self._order = order
        self._first, self._size = _spans(_immediate_dominators(predecessors, parents))

    def reaches(self, vertex: int) -> bool:
        """Whether the root leads to `vertex` at all."""
        return self._number[vertex] >= 0

    def dominates(self, early: int, late: int) -> bool:
        """Whether every path from the root to `late` goes through `early`."""
        dominator, vertex = self._number[early], self._number[late]
        if dominator < 0 or vertex < 0:
            return False
        start = self._first[dominator]
        return start <= self._first[vertex] < start + self._size[dominator]

    def predecessors(self, vertex: int) -> list[int]:
        """The vertices with an edge to `vertex`, of those that the root reaches."""
        number = self._number[vertex]
        return [] if number < 0 else [self._order[source] for source in self._predecessors[number]]


def _walk(successors: Sequence[Sequence[int]], root: int) -> tuple[list[int], list[int], list[int]]:
    """The number of each vertex (-1 if unreached), the vertices by number, and the parent of each number."""
    number = [-1] * len(successors)
    order: list[int] = []
    parents: list[int] = []
    waiting = [(root, 0)]
    while waiting:
        vertex, parent = waiting.pop()
        if number[vertex] >= 0:
            continue
        current = number[vertex] = len(order)
        order.append(vertex)
        parents.append(parent)
        waiting.extend((target, current) for target in reversed(successors[vertex]) if number[target] < 0)
    return number, order, parents


def _immediate_dominators(predecessors: list[list[int]], parents: list[int]) -> list[int]:
    """The immediate dominator of each number; the root is its own."""
    count = len(predecessors)
    semi = list(range(count))
    best = list(range(count))
    ancestor = [-1] * count
    waiting: list[list[int]] = [[] for _ in range(count)]
    nearest = [0] * count

    def lowest(vertex: int) -> int:
        if ancestor[vertex] < 0:
            return vertex
        path: list[int] = []
        current = vertex
        while ancestor[ancestor[current]] >= 0:
            path.append(current)
            current = ancestor[current]
        for step in reversed(path):
            above = ancestor[step]
            if semi[best[above]] < semi[best[step]]:
                best[step] = best[above]
            ancestor[step] = ancestor[above]
        return best[vertex]

    for vertex in range(count - 1, 0, -1):
        for source in predecessors[vertex]:
            candidate = semi[lowest(source)]
            semi[vertex] = min(semi[vertex], candidate)
        waiting[semi[vertex]].append(vertex)
        parent = parents[vertex]
        ancestor[vertex] = parent
        for pending in waiting[parent]:
            candidate = lowest(pending)
            nearest[pending] = candidate if semi[candidate] < semi[pending] else parent
        waiting[parent] = []
    for vertex in range(1, count):
        if nearest[vertex] != semi[vertex]:
            nearest[vertex] = nearest[nearest[vertex]]
    return nearest


def _spans(nearest: list[int]) -> tuple[list[int], list[int]]:
    """Each vertex's place in a walk over the tree, and how many places its subtree takes."""
    count = len(nearest)
    size = [1] * count
    # A vertex has a higher number than its dominator, so one backward and one forward pass are enough.
    for vertex in range(count - 1, 0, -1):
        size[nearest[vertex]] += size[vertex]
    first = [0] * count
    free = [1] * count
    for vertex in range(1, count):
        above = nearest[vertex]
        first[vertex] = free[above]
        free[above] += size[vertex]
        free[vertex] = first[vertex] + 1
    return first, size


Moment = Literal["start", "success", "failure"]


class Flow:
    """The control flow of one plan."""

    def __init__(self, plan: Plan) -> None:
        self.owner: dict[str, str] = {}
        """Member or body → the group directly around it."""
        self._plan = plan
        for node in plan.nodes.values():
            self._own(node)
        self._start: dict[str, int] = {}
        self._success: dict[str, int] = {}
        self._failure: dict[str, int] = {}
        self._ends: list[list[int]] = []
        self._predecessors: dict[str, set[str]] = {}
        self._number(plan)
        self._names = self._by_vertex()
        entry = self._start.get(self.outermost(plan.entry))
        self._tree = Dominators(self._ends, self._final if entry is None else entry)

    def outermost(self, name: str) -> str:
        """The outermost group around `name`, or `name` itself."""
        visited = {name}
        while (around := self.owner.get(name)) is not None and around not in visited:
            visited.add(around)
            name = around
        return name

    def unreachable(self) -> Iterator[str]:
        """Nodes that no run reaches, in the order of the file, without members of groups."""
        for name, vertex in self._start.items():
            if not self._tree.reaches(vertex):
                yield name

    def reaches(self, name: str | None, moment: Moment = "start") -> bool:
        """Whether a run can reach this moment of `name`; for `None`, the end."""
        vertex = self._vertex(name, moment)
        return vertex is not None and self._tree.reaches(vertex)

    def is_sure(
        self,
        early: str,
        outcome: Moment,
        late: str | None,
        moment: Moment = "start",
        *,
        absent: frozenset[str] = frozenset(),
    ) -> bool:
        """Whether `early` certainly had this outcome when `late` is at `moment`, if the steps `absent` did not succeed."""
        source, target = self._vertex(early, outcome), self._vertex(late, moment)
        if source is None or target is None:
            return False
        if self._tree.dominates(source, target):
            return True
        others = {vertex for name in absent if (vertex := self._success.get(name)) is not None}
        return bool(others) and not self._reaches_around(target, {source, *others})

    def _reaches_around(self, target: int, blocked: set[int]) -> bool:
        """Whether a run can reach `target` without any of `blocked`."""
        entry = self._start.get(self.outermost(self._plan.entry))
        if entry is None or entry in blocked:
            return False
        visited, todo = {entry}, [entry]
        while todo:
            vertex = todo.pop()
            if vertex == target:
                return True
            new = [end for end in self._ends[vertex] if end not in visited and end not in blocked]
            visited.update(new)
            todo += new
        return False

    def is_possible(self, early: str, outcome: Moment) -> bool:
        """Whether the run can continue after this outcome of `early`."""
        vertex = self._vertex(early, outcome)
        return vertex is not None and self._tree.reaches(vertex)

    def predecessors(self, name: str) -> set[str]:
        """The nodes that may directly precede `name`."""
        if name not in self._predecessors:
            start = self._vertex(name, "start")
            vertices = () if start is None else self._tree.predecessors(start)
            self._predecessors[name] = {self._names[vertex] for vertex in vertices}
        return self._predecessors[name]

    def fewest_steps(self) -> int | None:
        """The number of nodes in the shortest run; `None` if no run reaches the end."""
        entry = self._start.get(self.outermost(self._plan.entry))
        if entry is None:
            return None
        starts = set(self._start.values())
        steps = {entry: 1}
        near, far = [entry], list[int]()
        # Entering a node costs one step and leaving it none, so two lists replace a priority queue.
        while near or far:
            if not near:
                near, far = far, []
            vertex = near.pop()
            if vertex == self._final:
                return steps[vertex]
            for target in self._ends[vertex]:
                cost = steps[vertex] + (target in starts)
                if cost < steps.get(target, cost + 1):
                    steps[target] = cost
                    (far if target in starts else near).append(target)
        return None

    def must_succeed(self, name: str) -> bool:
        """Whether no run can end well before `name` has succeeded."""
        passed = self._success.get(name)
        entry = self._start.get(self.outermost(self._plan.entry))
        if passed is None or entry is None:
            return False
        reached = {entry} - {passed}
        waiting = list(reached)
        while waiting:
            vertex = waiting.pop()
            if self._can_end(vertex):
                return False
            new = set(self._ends[vertex]) - reached - {passed}
            reached |= new
            waiting += new
        return True

    def _can_end(self, vertex: int) -> bool:
        """Whether the run may end at this vertex."""
        if vertex == self._final:
            return True
        node = self._plan.nodes[self._names[vertex]]
        if isinstance(node.spec, TerminateSpec):
            return True
        is_failure = vertex == self._failure.get(node.name)
        is_success = vertex == self._success[node.name]
        return any(
            route.to == END and (is_success if route.on_error is None else is_failure)
            for route in node.routes
        )

    def _own(self, node: Node) -> None:
        spec = node.spec
        if isinstance(spec, ParallelSpec):
            for member in spec.members:
                self.owner.setdefault(member.name, node.name)
        elif isinstance(spec, ForEachSpec):
            # A body with the name of another node is a mistake, and must not hide that node.
            if is_same_step(self._plan.nodes.get(spec.body.name), spec.body):
                self.owner.setdefault(spec.body.name, node.name)
            self._own(spec.body)

    def _number(self, plan: Plan) -> None:
        ends = self._ends
        ends.append([])
        self._final = 0
        for name, node in plan.nodes.items():
            if name in self.owner:
                continue
            self._start[name] = len(ends)
            ends.append([])
            if any(route.on_error is not None for route in node.routes):
                self._success[name] = len(ends)
                self._failure[name] = len(ends) + 1
                ends[-1] += [len(ends), len(ends) + 1]
                ends += [[], []]
            else:
                self._success[name] = self._start[name]
        for name in self._start:
            self._connect(plan.nodes[name])

    def _connect(self, node: Node) -> None:
        success = self._ends[self._success[node.name]]
        failure = self._failure.get(node.name)
        has_success_route = False
        for route in node.routes:
            target = self._target(route)
            if route.on_error is None:
                has_success_route = True
                if target is not None:
                    success.append(target)
            elif failure is not None and target is not None:
                self._ends[failure].append(target)
        spec = node.spec
        if isinstance(spec, GateSpec):
            success += (
                vertex for option in spec.options if (vertex := self._named(option.route)) is not None
            )
        elif isinstance(spec, TerminateSpec):
            if spec.status == "success" and spec.output_template is None:
                success.append(self._final)
        elif not has_success_route:
            success.append(self._final)
        if isinstance(spec, QuestionsSpec) and spec.abort_route is not None:
            vertex = self._named(spec.abort_route)
            success += () if vertex is None else (vertex,)

    def _target(self, route: Route) -> int | None:
        if route.to is None:
            return None
        # With the output of such a route, values of the workflow's output that do not exist are left out.
        return None if route.to == END and route.output else self._named(route.to)

    def _named(self, target: str) -> int | None:
        return self._final if target == END else self._start.get(target)

    def _by_vertex(self) -> dict[int, str]:
        return {
            vertex: name
            for table in (self._start, self._success, self._failure)
            for name, vertex in table.items()
        }

    def _vertex(self, name: str | None, moment: Moment) -> int | None:
        if name is None:
            return self._final
        table = {"start": self._start, "success": self._success, "failure": self._failure}[moment]
        return table.get(name)
