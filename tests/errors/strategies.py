"""Any report at all, for the tests of the wire."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from failwell.capability import ResourceShortfall
from failwell.errors import Blame, Certainty, NotBefore, ProviderMetadata, Scene, UserAction
from failwell.errors.axes import ActionKind, Category
from failwell.errors.kind_registry import find_kind
from failwell.errors.kinds_table import CATALOGUE
from failwell.errors.report import Attempt, Cause, ErrorReport, Evidence, Frame, Internal

texts = st.text(max_size=12)
names = st.text(min_size=1, max_size=12)
numbers = st.floats(min_value=-1e9, max_value=1e9, allow_nan=False)
seconds = st.floats(min_value=0, max_value=366 * 86_400)
counts = st.integers(min_value=-(2**53), max_value=2**53)
times = st.datetimes(
    min_value=datetime(1970, 1, 1),  # noqa: DTZ001
    max_value=datetime(9000, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)
kinds = st.one_of(
    st.sampled_from([made.name for made in CATALOGUE]),
    st.from_regex(r"\A[a-z_][a-z0-9_]{0,5}(\.[a-z_][a-z0-9_]{0,5}){1,3}\Z").filter(
        lambda name: find_kind(name) is None
    ),
)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), counts, numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)


def _maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), strategy)


scenes = st.builds(
    Scene,
    **{name: _maybe(texts) for name in ("run", "workflow", "node", "item", "job", "capability", "instance")},
    **{name: _maybe(texts) for name in ("session", "turn", "tool")},
    attempt=_maybe(counts),
)
metadata = st.builds(
    ProviderMetadata,
    sdk=_maybe(texts),
    exception_type=_maybe(texts),
    status_code=_maybe(st.integers(100, 599)),
    code=_maybe(texts),
    request_id=_maybe(texts),
    retry_after=_maybe(seconds),
    headers=st.dictionaries(texts, texts, max_size=2),
)
waits = st.builds(
    NotBefore,
    after=seconds,
    at=_maybe(times),
    source=texts,
    confidence=st.sampled_from(["high", "medium", "low"]),
)
shortfalls = st.builds(
    ResourceShortfall,
    resource=st.sampled_from(["gpu_vram_mb", "system_ram_mb", "disk_mb"]),
    needed=numbers,
    available=numbers,
)
causes = st.builds(
    Cause,
    type=texts,
    kind=_maybe(texts),
    message=_maybe(texts),
    via=st.sampled_from(["cause", "context", "member"]),
    level=counts,
    notes=st.lists(texts, max_size=2).map(tuple),
)
frames = st.builds(
    Frame,
    boundary=texts,
    name=texts,
    workflow=_maybe(texts),
    type=_maybe(texts),
    kind=_maybe(texts),
    iteration=_maybe(counts),
    item=_maybe(texts),
)
attempts = st.builds(
    Attempt,
    number=counts,
    kind=_maybe(texts),
    certainty=_maybe(st.sampled_from(Certainty)),
    provider=_maybe(texts),
    model=_maybe(texts),
    usage=st.dictionaries(texts, counts, max_size=2),
    cost=_maybe(counts),
    wait=_maybe(seconds),
    reason=_maybe(texts),
)
evidence = st.builds(Evidence, rule=texts, basis=texts, saw=texts)
internals = st.builds(Internal, repr=texts, traceback=_maybe(texts))


def _tuples(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(strategy, max_size=2).map(tuple)


@st.composite
def reports(draw: st.DrawFn) -> ErrorReport:
    """A report that somebody could have made: any content, no contradiction."""
    kind = draw(kinds)
    known = find_kind(kind)
    category = draw(st.sampled_from(Category)) if known is None else known.category
    return ErrorReport(
        id=draw(texts),
        kind=kind,
        category=category,
        certainty=draw(st.sampled_from(Certainty)),
        blame=draw(st.sampled_from(Blame)),
        retryable=category.retryable and draw(st.booleans()),
        message=draw(texts),
        title=draw(texts),
        error_type=draw(texts),
        user_action=UserAction(draw(st.sampled_from(ActionKind)), draw(texts)),
        fingerprint=draw(texts),
        occurred_at=draw(times),
        caller_facing=draw(st.booleans()),
        scene=draw(scenes),
        provider=draw(_maybe(names)),
        model=draw(_maybe(names)),
        provider_metadata=draw(_maybe(metadata)),
        not_before=draw(_maybe(waits)),
        fields_invalid=draw(_maybe(_tuples(texts))),
        resource_shortfall=draw(_maybe(shortfalls)),
        details=draw(st.dictionaries(texts, json_values, max_size=3)),
        causes=draw(_tuples(causes)),
        frames=draw(_tuples(frames)),
        attempts=draw(_tuples(attempts)),
        evidence=draw(_tuples(evidence)),
        internal=draw(_maybe(internals)),
    )
