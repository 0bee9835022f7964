"""Headers are read alike through every library's mapping, and only those that somebody asks for."""

import re
from pathlib import Path

import httpx
from hypothesis import given
from hypothesis import strategies as st

from failwell.errors.headers import SAFE_HEADERS, allow_listed, is_read_header, lower_headers
from tests.specimens import each

ADAPTERS = Path(__file__).resolve().parents[2] / "src/failwell/adapters"
NAMES = sorted(
    {*SAFE_HEADERS, "x-ratelimit-reset-tokens", "set-cookie", "x-rate-limit-reset", "authorization", "vary"}
)
pairs = st.lists(
    st.tuples(
        st.sampled_from([*NAMES, *(name.title() for name in NAMES)]),
        st.text(st.characters(codec="latin-1", exclude_categories=["Cc"]), max_size=300),
    ),
    max_size=30,
)


@given(pairs)
def test_the_lines_that_httpx_keeps_say_what_its_mapping_says(sent: list[tuple[str, str]]) -> None:
    headers = httpx.Headers([(name.encode(), value.encode()) for name, value in sent])

    assert lower_headers(headers) == lower_headers(dict(headers.items()))


def test_a_value_that_is_no_utf8_is_left_to_the_library() -> None:
    headers = httpx.Headers([(b"Server", b"caf\xe9"), (b"Retry-After", b"5")])

    assert lower_headers(headers) == {"server": "café", "retry-after": "5"}


def test_a_header_sent_twice_is_one_list() -> None:
    headers = httpx.Headers([("RateLimit", '"a";r=0;t=5'), ("ratelimit", '"b";r=9;t=7')])

    assert lower_headers(headers) == {"ratelimit": '"a";r=0;t=5, "b";r=9;t=7'}


def test_a_cookie_is_not_even_read() -> None:
    assert lower_headers({"Set-Cookie": "session=1", "X-Request-Id": "r"}) == {"x-request-id": "r"}


def test_an_odd_mapping_costs_its_headers_and_nothing_else() -> None:
    class Odd:
        _list = 5

        def items(self) -> object:
            raise OSError("gone")

    assert lower_headers(Odd()) == {}
    assert lower_headers({5: 6, b"retry-after": 1, "Retry-After": 7}) == {"retry-after": "1, 7"}


def test_what_is_kept_is_cut_and_counted() -> None:
    many = {f"x-ratelimit-{n}": "v" * 300 for n in range(60)}

    kept = allow_listed({**many, "x-ms-retry-after-ms": "5"})

    assert len(kept) == 40
    assert {len(value) for value in kept.values()} == {200}


@each("path", sorted(ADAPTERS.rglob("*.py")), ids=lambda path: path.stem)
def test_every_header_that_an_adapter_asks_for_is_read(path: Path) -> None:
    asked = re.findall(r'headers(?:\.get\(|\[)"([a-z-]+)"', path.read_text(encoding="utf-8"))

    assert [name for name in asked if not is_read_header(name)] == []


def test_every_header_in_a_list_of_names_is_read() -> None:
    from failwell.adapters import retry_after as waits
    from failwell.adapters import sdk_exceptions as sdk

    listed = {*vars(sdk)["_REQUEST_IDS"], *vars(sdk)["_CODE_HEADERS"], *vars(waits)["_OUTRIGHT"]}

    assert [name for name in sorted(listed) if not is_read_header(name)] == []


def test_of_no_headers_none_are_kept() -> None:
    assert allow_listed({}) == {}


def test_names_and_values_that_are_bytes_are_read_and_spoil_nothing_for_others() -> None:
    sent = {b"Retry-After": b"7", b"x-odd": b"1"}

    assert lower_headers(sent) == {"retry-after": "7"}
    # What was learned of a name must hold for every library that comes after.
    assert lower_headers(_Lines([(b"Retry-After", b"retry-after", b"9")])) == {"retry-after": "9"}


class _Lines:
    """Headers as httpx keeps them."""

    def __init__(self, lines: list[tuple[bytes, bytes, bytes]]) -> None:
        self._list = lines
