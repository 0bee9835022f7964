"""Kind → everything that follows from it: the one place that derivation happens.

The runtime's own kinds come from `failwell.errors.kinds_table`. Authors add theirs with
`register_kind`; the runtime's prefixes are refused, and so is a second, different meaning
for a name that is already taken, because a kind is API.
"""

from functools import lru_cache

from failwell.errors.axes import ActionKind, Blame, Category, Certainty
from failwell.errors.kinds_table import CATALOGUE, Kind
from failwell.errors.lazy_regex import lazy_regex

KIND_PATTERN = lazy_regex(r"[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)+")
LONGEST_KIND = 200
"""Characters; whatever holds a kind is bounded, so a kind is too."""

OWNED_PREFIXES = (
    "internal.",
    "provider.",
    "subworkflow.",
    "retry.",
    "halt.",
    "tool.",
    "resource.",
    "worker.",
    "cancel.",
    "limit.",
    "session.",
    "validation.",
    "extension.",
)
"""Kinds under these belong to the runtime; no author and no script may claim one."""


class KindError(ValueError):
    """A kind was declared or looked up in a way the registry cannot accept."""


KINDS: dict[str, Kind] = {kind.name: kind for kind in CATALOGUE}
"""Every registered kind by its name. Only `register_kind` adds to it."""


_RUNTIME_KINDS = tuple(KINDS)
_OWNED_WORDS = tuple(prefix.rstrip(".") for prefix in OWNED_PREFIXES)


def is_kind(name: object) -> bool:
    """Whether `name` is spelled like a kind (it need not be registered)."""
    return isinstance(name, str) and len(name) <= LONGEST_KIND and KIND_PATTERN.fullmatch(name) is not None


def is_owned(name: str) -> bool:
    """Whether a kind begins with a prefix that is reserved for the runtime."""
    return name.startswith(OWNED_PREFIXES)


def kind(name: str) -> Kind:
    """The registered kind called `name`.

    Raises:
        KindError: it is not registered; the message names the nearest ones.
    """
    known = KINDS.get(name)
    if known is None:
        raise KindError(_not_registered(name))
    return known


def find_kind(name: str) -> Kind | None:
    """The registered kind called `name`, or `None` for one from a newer peer."""
    return KINDS.get(name)


def http_status_of(name: str, category: Category) -> int:
    """The HTTP status of a kind; that of its category for a kind from a newer peer."""
    known = KINDS.get(name)
    return category.status if known is None else known.status


def kinds() -> tuple[Kind, ...]:
    """Every registered kind, ordered by name."""
    return tuple(KINDS[name] for name in sorted(KINDS))


def near_kinds(name: str, most: int = 3) -> list[str]:
    """Registered kinds that begin with `name`, or else those spelled most like it."""
    from difflib import get_close_matches

    near = [known for known in sorted(KINDS) if known.startswith(name)] if "." in name.rstrip(".") else []
    near = near or get_close_matches(name, KINDS, n=most, cutoff=0.6)
    if not near:
        near = [known for known in sorted(KINDS) if known.split(".")[-1] == name.rsplit(".", maxsplit=1)[-1]]
    return near[:most]


def check_kind(name: str) -> None:
    """Refuse a kind that can only be a mistake: malformed, unknown under a prefix of the runtime, or nearly a known one.

    Kinds of authors may be registered later, so any other name is accepted.

    Raises:
        KindError: it is such a mistake; the message names the nearest kinds.
    """
    if name not in KINDS and (mistake := _mistake(name)) is not None:
        raise KindError(mistake)


def check_prefix(prefix: str) -> None:
    """`check_kind` for the beginning of kinds, with its dot.

    Raises:
        KindError: no kind begins with it.
    """
    if not is_kind(f"{prefix}x"):
        raise KindError(
            f"{prefix!r} is not the beginning of kinds: write lower-case words, each with its dot"
        )
    if any(name.startswith(prefix) for name in KINDS):
        return
    owned = is_owned(prefix)
    near = _near_prefixes(prefix) if owned or _is_nearly_owned(prefix) else []
    if owned or near:
        raise KindError(f"no kind begins with {prefix!r}{_or_hint(near)}")


@lru_cache(maxsize=1024)
def _mistake(name: str) -> str | None:
    """What is wrong with a name that is not registered; cached, because faults are raised often."""
    if not is_kind(name):
        hint = [f"{name}."] if f"{name}." in OWNED_PREFIXES else near_kinds(name.strip(" .").lower())
        return f"{name!r} is not a kind: use lower-case words joined by dots{_or_hint(hint)}"
    if is_owned(name):
        return _not_registered(name)
    if not _is_nearly_owned(name):
        return None
    from difflib import get_close_matches

    near = get_close_matches(name, _RUNTIME_KINDS, n=1, cutoff=0.88)
    if not near:
        return None
    return f"no kind is called {name!r}{_or_hint(near)} If it is your own, register it first with `register_kind`."


def _is_nearly_owned(name: str) -> bool:
    from difflib import get_close_matches

    return bool(get_close_matches(name.split(".", 1)[0], _OWNED_WORDS, n=1, cutoff=0.75))


def _near_prefixes(prefix: str) -> list[str]:
    from difflib import get_close_matches

    known = {name.rsplit(".", 1)[0] + "." for name in _RUNTIME_KINDS} | set(OWNED_PREFIXES)
    return get_close_matches(prefix, sorted(known), n=2, cutoff=0.75)


def register_kind(
    name: str,
    *,
    category: Category | str,
    certainty: Certainty | str = Certainty.UNKNOWN,
    blame: Blame | str = Blame.WORKFLOW,
    title: str | None = None,
    summary: str | None = None,
    action: ActionKind | str = ActionKind.UNKNOWN,
    advice: str = "",
    policy: str | None = None,
    model_keys: tuple[str, ...] = (),
) -> Kind:
    """Register an author's kind with its category and texts. The same call may be repeated.

    Raises:
        KindError: the name is malformed, belongs to the runtime, or already means
            something else.
    """
    if not is_kind(name):
        raise KindError(
            f"{name!r} is not a kind: use lower-case words joined by dots, such as `external.git.drift`"
        )
    if is_owned(name):
        prefix = name.split(".", 1)[0]
        raise KindError(
            f"`{name}` lies under `{prefix}.`, which belongs to the runtime; "
            f"choose a prefix of your own, such as `external.{name.split('.', 1)[1]}`"
        )
    category = Category(category)
    words = name.rsplit(".", 1)[-1].replace("_", " ").strip() or name
    registered = Kind(
        name=name,
        category=category,
        certainty=Certainty(certainty),
        blame=Blame(blame),
        title=title or words.capitalize(),
        summary=summary or f"The work reported {words}.",
        action=ActionKind(action),
        advice=advice,
        status=category.status,
        policy=policy or ("server" if category.retryable else "none"),
        resubmit=category.resubmit,
        model_keys=model_keys,
    )
    known = KINDS.get(name)
    if known is not None and known != registered:
        raise KindError(f"`{name}` is already registered with another meaning ({known.category})")
    KINDS[name] = registered
    _mistake.cache_clear()
    return registered


def _not_registered(name: str) -> str:
    return f"no kind is called {name!r}{_or_hint(near_kinds(name))}"


def _or_hint(near: list[str]) -> str:
    return f"; did you mean {' or '.join(f'`{n}`' for n in near)}?" if near else ""
