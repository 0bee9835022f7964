"""What a subject and its state mean together: one row for each pair of concepts.

Rows are in order of weight: where a text says several things, the first row that holds decides.
"""

from typing import Any, NamedTuple

from failwell.adapters.words.grammar import Hit

_REACH = 9


class Cell(NamedTuple):
    """One row for error messages: a subject and a state near each other in one clause, or one concept alone."""

    kind: str
    subjects: frozenset[str]
    states: frozenset[str] = frozenset()
    """Empty: the subject says all by itself."""
    reach: int = _REACH
    """How many words may lie between them."""
    anywhere: bool = False
    """Whether they may stand in different clauses."""
    needs: str = ""
    """A concept that must be mentioned besides."""
    in_order: bool = False
    """Whether the state must come after the subject."""
    soft: bool = False
    """Whether a short window that the text names turns a quota into a rate limit."""
    weak: bool = False
    """Whether it counts only where nothing is said of a rate."""
    without_status: bool = False
    """Whether it counts only where no status says more."""
    strong: bool = False
    """Whether it holds for a status, too, that allows its kind no other way."""
    elsewhere: bool = False
    """Whether it is not looked for in a reply about a full window, of which a quick look for a few words is taken."""

    @property
    def name(self) -> str:
        """The row's own name, for the evidence: it holds no word of the text."""
        parts = (sorted(self.subjects), sorted(self.states))
        return " + ".join("/".join(part) for part in parts if part)


def _cell(kind: str, subjects: str, states: str = "", **flags: Any) -> Cell:
    return Cell(kind, frozenset(subjects.split()), frozenset(states.split()), **flags)


CELLS: tuple[Cell, ...] = (
    _cell("resource.gpu_memory", "gpu", "out_of_memory", anywhere=True),
    _cell("resource.gpu_memory", "model_cache", "above exceeded exhausted required", reach=16),
    _cell("resource.system_memory", "out_of_memory"),
    _cell("resource.system_memory", "memory", "exhausted exceeded required overloaded unavailable above"),
    _cell("resource.system_memory", "memory", "failed", reach=1),
    _cell("resource.disk", "full"),
    _cell("resource.exhausted", "thread"),
    _cell("internal.bug", "assertion", "failed", reach=2),
    _cell("provider.quota_exhausted", "money", "exhausted exceeded reached invalid disabled denied expired"),
    _cell("provider.quota_exhausted", "plan", "expired"),
    _cell("provider.quota_exhausted", "money", "failed", reach=2),
    _cell("provider.quota_exhausted", "money", "lacking", reach=4),
    _cell("provider.quota_exhausted", "none", "money", reach=3, in_order=True, elsewhere=True),
    _cell("provider.quota_exhausted", "account", "exhausted", reach=4),
    _cell("provider.quota_exhausted", "tokens", "exhausted", reach=3, elsewhere=True),
    _cell("provider.quota_exhausted", "money plan", "required", weak=True),
    _cell("provider.quota_exhausted", "plan", "reached exceeded maximum", weak=True),
    _cell("provider.quota_exhausted", "long_window", "exceeded reached exhausted"),
    _cell("provider.quota_exhausted", "limit quota rate tokens request", "long_window"),
    _cell("provider.quota_exhausted", "service", "limit", reach=1, in_order=True, soft=True),
    _cell("provider.quota_exhausted", "maximum", "reached", reach=3, soft=True, elsewhere=True),
    _cell("provider.context_too_long", "prompt input content context request", "too_big", strong=True),
    _cell("provider.context_too_long", "prompt input content context", "too_many", weak=True),
    _cell(
        "provider.context_too_long",
        "prompt input content context tokens request",
        "above",
        strong=True,
        elsewhere=True,
    ),
    _cell(
        "provider.context_too_long", "size", "too_big exceeded above", reach=6, strong=True, elsewhere=True
    ),
    _cell("provider.context_too_long", "size", "maximum", reach=4),
    _cell("provider.context_too_long", "model", "too_big", reach=6),
    _cell("provider.context_too_long", "context", "maximum exceeded"),
    _cell("provider.context_too_long", "tokens", "too_big too_many maximum"),
    _cell("provider.context_too_long", "tokens", "required", reach=6, weak=True),
    _cell("provider.context_too_long", "prompt input tokens", "exceeded"),
    _cell("provider.context_too_long", "tokens", "limit", weak=True),
    _cell("provider.quota_exhausted", "quota", "exhausted exceeded reached", soft=True),
    _cell("provider.content_refused", "safety", "blocked denied content prompt"),
    _cell("provider.content_refused", "prompt content", "blocked", reach=5, weak=True),
    _cell("provider.content_refused", "unsafe_text"),
    _cell("provider.auth", "key", "invalid missing unknown absent required expired disabled failed denied"),
    _cell("provider.auth", "authentication", "failed invalid missing absent required denied expired"),
    _cell("provider.auth", "unauthenticated"),
    _cell("provider.auth", "login", "failed invalid expired", reach=3),
    _cell("provider.auth", "signature", "invalid expired failed mismatched", reach=4),
    _cell("provider.auth", "none", "key", reach=3, in_order=True),
    _cell("provider.auth", "login", "required", reach=1),
    _cell("provider.model_not_found", "model model_name this_model version", "missing retired unknown"),
    _cell("provider.model_not_found", "model_name", "not_offered", reach=3, in_order=True),
    _cell("provider.model_not_found", "model", "not_offered", reach=4, in_order=True, needs="many_models"),
    _cell("provider.permission", "account", "disabled denied contention"),
    _cell("provider.capability_missing", "this_model", "denied"),
    _cell("provider.permission", "region", "unsupported not_offered denied unavailable"),
    _cell("provider.permission", "terms", "required"),
    _cell("provider.permission", "access", "denied exhausted required lacking blocked failed"),
    _cell("provider.permission", "access", "absent", reach=2),
    _cell(
        "extension.dependency_missing",
        "dependency",
        "missing absent required mismatched contention not_offered unsupported unavailable unknown failed",
        without_status=True,
    ),
    _cell(
        "extension.dependency_missing",
        "version",
        "missing absent required mismatched not_offered unsupported unavailable unknown",
        without_status=True,
    ),
    # Packages that need different versions; a conflict about the version of a row is named the other way round.
    _cell(
        "extension.dependency_missing", "version", "contention", reach=1, in_order=True, without_status=True
    ),
    _cell(
        "extension.dependency_missing",
        "gpu",
        "required not_offered unsupported missing",
        reach=6,
        without_status=True,
    ),
    _cell("extension.dependency_missing", "none", "dependency", reach=3, in_order=True, without_status=True),
    _cell("validation.config_invalid", "none", "variable", reach=4, in_order=True, without_status=True),
    _cell("validation.config_invalid", "port", "exists", reach=4, without_status=True),
    _cell("provider.rate_limited", "throughput", "exceeded", strong=True),
    _cell("provider.rejected", "throughput", strong=True),
    _cell("provider.rejected", "provider", "not_offered unknown", reach=4),
    _cell("provider.capability_missing", "unsupported"),
    _cell("provider.capability_missing", "not_offered"),
    _cell("provider.bad_request", "invalid", "field input content", reach=1, in_order=True),
    _cell("provider.model_not_found", "model model_name", "invalid", reach=4),
    _cell("provider.model_not_found", "many_models"),
    _cell("provider.tls_failed", "certificate", "failed invalid expired"),
    _cell("provider.connection", "unreachable"),
    _cell("provider.connection", "connection", "blocked"),
    _cell("provider.connection", "connection", "unavailable", reach=4, in_order=True),
    _cell("provider.outcome_unknown", "connection", "closed"),
    _cell("provider.connection", "connection", "timed_out failed"),
    _cell("tool.busy", "contention", "timed_out", reach=6),
    # Who lost a lock does not know what the next holder does.
    _cell("provider.outcome_unknown", "contention", "missing expired absent", reach=2, without_status=True),
    _cell("provider.outcome_unknown", "timed_out"),
    _cell("extension.dependency_missing", "install", without_status=True),
    _cell("provider.rejected", "no_route", strong=True),
    _cell("provider.rejected", "container", "missing unknown", reach=8, in_order=True, strong=True),
    _cell("provider.rejected", "missing unknown", "container", reach=2, in_order=True, strong=True),
    _cell("provider.rejected", "none", "container", reach=3, in_order=True, without_status=True),
    _cell("provider.rejected", "endpoint", "missing unknown", strong=True),
    _cell("provider.rejected", "url endpoint", "invalid missing absent required"),
    _cell("validation.config_invalid", "variable", "required missing absent invalid unknown expired"),
    _cell("internal.bug", "bug"),
    _cell("provider.bad_request", "exists"),
    _cell(
        "provider.bad_request",
        "field prompt input",
        "invalid missing unknown absent required disabled denied",
    ),
    _cell("provider.bad_request", "request", "invalid missing unknown absent required"),
    _cell("provider.permission", "person tool", "blocked", reach=5, without_status=True),
    _cell("provider.permission", "denied", without_status=True),
    _cell("provider.permission", "person", "contention", reach=2, in_order=True, without_status=True),
    _cell("tool.busy", "contention"),
    _cell("provider.rate_limited", "rate"),
    _cell("provider.rate_limited", "concurrency connection", "too_many exceeded reached maximum"),
    _cell("provider.rate_limited", "request", "too_many"),
    _cell("provider.rate_limited", "limit", "reached exceeded", without_status=True),
    _cell(
        "provider.overloaded",
        "model model_name this_model server service container",
        "starting",
        reach=4,
        in_order=True,
        without_status=True,
    ),
    _cell("provider.overloaded", "overloaded"),
    _cell("provider.overloaded", "server service provider request", "unavailable"),
    _cell("provider.overloaded", "model model_name this_model", "unavailable", needs="now"),
    _cell("provider.model_not_found", "model model_name this_model", "unavailable"),
    _cell("provider.unavailable", "server", "failed", reach=3),
    _cell("provider.bad_request", "missing"),
    _cell("provider.bad_request", "out_of_bounds"),
    _cell("provider.bad_request", "malformed"),
    _cell("provider.bad_request", "mismatched"),
    _cell("provider.bad_request", "reading", "failed", reach=3),
    _cell("provider.bad_request", "unknown", "name", reach=3, in_order=True, without_status=True),
)


def _index() -> tuple[dict[tuple[str, str], tuple[int, ...]], dict[str, int]]:
    """The first row for each pair of concepts in the order of the text, and for each concept alone.

    Before the first row for a pair stand those that need a third concept.
    """
    pairs: dict[tuple[str, str], tuple[int, ...]] = {}
    alone: dict[str, int] = {}
    for place, cell in enumerate(CELLS):
        for subject in cell.subjects:
            if not cell.states:
                alone.setdefault(subject, place)
            for state in cell.states:
                _add(pairs, (subject, state), place)
                if not cell.in_order:
                    _add(pairs, (state, subject), place)
    return pairs, alone


def _add(pairs: dict[tuple[str, str], tuple[int, ...]], pair: tuple[str, str], place: int) -> None:
    known = pairs.get(pair, ())
    if all(CELLS[earlier].needs for earlier in known):
        pairs[pair] = (*known, place)


_PAIRS, _ALONE = _index()


def cells_of(hits: "list[Hit] | tuple[Hit, ...]") -> tuple[Cell, ...]:
    """The rows that hold for the message of an error, the first of them first."""
    places: set[int] = set()
    for position, (place, clause, concept) in enumerate(hits):
        if concept in _ALONE:
            places.add(_ALONE[concept])
        for other_place, other_clause, other in hits[position + 1 :]:
            for found in _PAIRS.get((concept, other), ()):
                if _is_near(CELLS[found], other_place - place, same=other_clause == clause):
                    places.add(found)
    cells = tuple(CELLS[place] for place in sorted(places))
    if all(not cell.needs for cell in cells):
        return cells
    mentioned = {concept for _, _, concept in hits}
    return tuple(cell for cell in cells if not cell.needs or cell.needs in mentioned)


def _is_near(cell: Cell, distance: int, *, same: bool) -> bool:
    return cell.anywhere or (same and distance <= cell.reach)
