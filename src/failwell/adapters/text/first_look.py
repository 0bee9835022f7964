"""A cheap first look at a text: whether reading it closely can find a fact.

Most messages of plain exceptions hold none, and `describe` must not take longer for them.
"""

from failwell.errors.lazy_regex import lazy_regex

_STATUS = lazy_regex(r"[45]\d\d")
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
    "ASSERT",
    "ssertion",
    "(): ",
    "sage: ",
)
_WORDS = frozenset(
    """
    abort aborted account/partition ambiguous banner actively address addresssanitizer administratively allocate allocated allocation already archive argument
    artifact assembly associated assocmaxsubmitjoblimit authenticate authentication bad_alloc being broken bundler busy canceled candidate
    cannot cask certificate close closed code command compressed configuration conflict conflicting connect connected connecting connection
    connections context core corrupted corruption couldn credential credentials cuda curl daemon database deadline deadlock declined denied
    device died directory disconnected disk distribution docker double-linked dpkg driver dumped duplicate emerg end-of-central-directory enough
    entry env eof error errors exc exceeded exceeds exec executable execute exist exit exited externally-managed-environment failed fatal fetch
    floating forcibly format formula found gem gh006 git goaway goroot gzip handshake hang hashes heap host hung illegal imds installable
    insufficient interrupted kex_exchange_identification killed knownhosts limiting load loaded loading lock locks logged login lookup manifest
    matches memory merge metadata-generation-failed methods misbehaving mismatch modified module module_not_found munmap_chunk network networkerror
    noauth nodename non-zero npm nvidia nvidia-container-cli os overwritten owner package packet panic password pathspec peer period permitted
    pg_hba pipe pkix platform playwright policy premature prev_size progress properly qos qosmaxsubmitjobperuserlimit quota read-only received
    recognized recovery refs refused registries rejected release remote reset resolution resolutionimpossible resolve resolvepackagenotfound
    resource respond return returned route rpc rule satisfies scripts secure segmentation self-signed serialize server service sh shared
    shutting sideband sigkill signal slots smashing socket source space specified sql sqldriverconnect sqlstate ssh ssh_exchange_identification
    starting status such sudo sudoers symbolic system target terminal terminated threadsanitizer time-out timed timedout timeout too
    toomanyrequests translate trusted unable unauthorized unbound undefined unexpected unexpectedeof unknown unmet unreachable
    unsatisfiableerror username violates websocket wget wrongpass x509
    """.split()  # noqa: SIM905  (a list of its words would fill two hundred lines)
)
"""A word of every sentence that the reader looks for, in lower case."""
_SPACES = str.maketrans(dict.fromkeys("\n\t:;,.()[]{}<>'\"`=!?|", " "))
_NAME = lazy_regex(r"E[A-Z]{4}|[A-Z]{2}_[A-Z]{2}|SQL|SIG[A-Z]|\d [A-Z]{5}")


def may_hold_facts(text: str) -> bool:
    """Whether a closer look at `text` can find a fact."""
    if not _WORDS.isdisjoint(text.translate(_SPACES).lower().split()):
        return True
    return (
        any([part in text for part in _PARTS])  # noqa: C419  (a generator takes twice as long)
        or _STATUS.search(text) is not None
        or _NAME.search(text) is not None
    )
