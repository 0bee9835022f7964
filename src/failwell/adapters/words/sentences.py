"""What libraries say of arguments that they do not take, and of calls that come at the wrong time.

These sentences have a form and no subject of their own: "expected X, got Y" is said of anything. They are looked at
last, where no code, no class and no concept says more, and only of errors without a reply.
"""

import re

_LONGEST = 1_000
_THING = r"[^\n]{1,100}?"
_ARGUMENT = re.compile(
    # CPython: "expected str, bytes or os.PathLike object, not int", "expected 2 arguments, got 3".
    rf"\bexpect(?:ed|s|ing)\b{_THING}\b(?:but|got|received|instead|found|given)\b|\bexpected{_THING}, not \w"
    rf"|\b(?:must|should|has to|have to|needs? to) (?:not )?be (?:an?|one|of|in|at|either|specified|provided|given|set|passed|unique|greater|less|smaller|larger|between|callable|positive|non)\b"
    rf"|\bmust (?:have|contain|specify|provide|pass|supply|include|match|start with|end with|implement|define|inherit)\b"
    rf"|\bplease (?:specify|provide|pass|supply)\b|\b(?:exactly|at least|only) one of\b"
    rf"|\bat least (?:one|two|\d{{1,6}}){_THING}\brequired\b|\bfailed validation\b|\bvalidation (?:has )?failed\b|\bfound, \w{3, 20} expected\b"
    rf"|\b(?:is|are) not (?:an? )?valid\b|\binvalid (?!response|reply|answer|server|state|data received|checksum|token|memory|handle)[a-z]"
)
_ORDER = re.compile(
    # CPython: "Event loop is closed", "cannot reuse already awaited coroutine", "threads can only be started once".
    r"\bcan(?:no|')t be (?:called|used|reused|awaited|modified|changed|started|entered)\b"
    r"|\balready (?:been )?(?:closed|stopped|shut down|started|running|initiali[sz]ed|finali[sz]ed|consumed|called|disposed|awaited)\b"
    r"|\bnot (?:been |yet )?(?:initiali[sz]ed|started|opened|fitted|built|entered)\b"
    r"|\b(?:loop|session|client|pool|store|writer|reader|producer|consumer|file|cursor|object|instance|channel|stream|handle)\b (?:is|was|has been) (?:already )?(?:closed|stopped|shut down|disposed|finali[sz]ed)\b"
    r"|\bcan only be \w{3,12} (?:once|when|from|in)\b|\bonly be called\b|\bmore than once\b|\boutside of (?:an?|the)\b|\bbefore calling\b|\bcall \S{2,60} (?:first|before)\b"
)


def complains_of_an_argument(low: str) -> bool:
    """Whether a lower-cased sentence says what a value should have been: `expected a string, got 3`."""
    return _ARGUMENT.search(low[:_LONGEST]) is not None


def complains_of_the_order(low: str) -> bool:
    """Whether a lower-cased sentence says that something was used too early, too late or twice: `session is closed`."""
    return _ORDER.search(low[:_LONGEST]) is not None
