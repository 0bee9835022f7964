"""A cheap first look at a text: whether reading it closely can find a fact.

Most messages of plain exceptions hold none, and `describe` must not take longer for them.
"""

import re

_STATUS = re.compile(r"[45]\d\d")
_PARTS = (
    "Error",
    "xception",
    "Status",
    "Timeout",
    "Errno",
    "_ERR",
    "CERT",
    "CUDA",
    "(Caused",
    "::",
    "raised ",
    "panicked",
    "ORA-",
    "Partition",
    "BackOff",
)
_WORDS = frozenset(
    """
    abort aborted actively address addresssanitizer allocate allocated allocation already argument associated authenticate
    authentication bad_alloc broken busy canceled candidate cannot certificate close closed code command configuration conflict
    connect connected connecting connection connections context core credential credentials cuda curl daemon database deadline
    deadlock declined denied device died directory disconnected disk distribution docker dpkg dumped duplicate enough env eof error
    exceeded exec executable execute exist exit exited externally-managed-environment failed fatal floating forcibly format
    found gh006 git goaway handshake hang heap host hung illegal imds insufficient interrupted kex_exchange_identification killed
    knownhosts loading lock locks logged lookup matches memory merge methods misbehaving module module_not_found network
    noauth nodename non-zero npm os overwritten package packet panic password pathspec peer period permitted pg_hba pipe pkix
    premature progress properly read-only received recognized recovery refs refused rejected remote reset resolution resolve
    resource respond return returned route rpc rule satisfies segmentation self-signed server service sh shared shutting
    sideband serialize sigkill signal slots socket space specified sql sqlstate ssh ssh_exchange_identification starting status
    such symbolic system target terminated threadsanitizer time-out timed timeout too toomanyrequests translate trusted
    unable unauthorized unexpected unexpectedeof unknown unreachable username violates websocket wget wrongpass x509
    """.split()  # noqa: SIM905  (a list of its words would fill two hundred lines)
)
"""A word of every sentence that the reader looks for, in lower case."""
_SPACES = str.maketrans(dict.fromkeys("\n\t:;,.()[]{}<>'\"`=!?|", " "))
_NAME = re.compile(r"E[A-Z]{4}|[A-Z]{2}_[A-Z]{2}|SQL|SIG[A-Z]|\d [A-Z]{5}")


def may_hold_facts(text: str) -> bool:
    """Whether a closer look at `text` can find a fact."""
    if not _WORDS.isdisjoint(text.translate(_SPACES).lower().split()):
        return True
    return (
        any([part in text for part in _PARTS])  # noqa: C419  (a generator takes twice as long)
        or _STATUS.search(text) is not None
        or _NAME.search(text) is not None
    )
