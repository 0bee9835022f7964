"""The dominator tree of a graph, in almost linear time.

The algorithm of Lengauer and Tarjan with path compression, without recursion, on vertices numbered in
depth-first order. https://doi.org/10.1145/357062.357071
"""

from collections.abc import Sequence


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
