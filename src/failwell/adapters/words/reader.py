"""What a text says, remembered for texts that differ in their numbers alone.

The same sentence comes again in every failure of a service, with other numbers in it. Only the hash of a text is
stored, never the text.
"""

import re
from functools import cache
from typing import NamedTuple

from failwell.adapters.rules import LONG, QUOTA
from failwell.adapters.words.cells import CELLS, Cell, cells_of
from failwell.adapters.words.grammar import LEXICON, alternatives, forms
from failwell.errors.lazy_regex import lazy_regex

_MOST_TEXTS = 1024
_LONGEST = 2_400
_COMMON = frozenset({"prompt", "context", "request", "limit", "rate", "tokens"})
_NUMBERS = str.maketrans("123456789", "000000000")
_SHORT_WINDOW = lazy_regex(
    r"(?:per|/|each|every) ?[-_]?(?:\d{1,5} ?)?(?:sec|min|hour)|/ ?s\b|\b[tr]p[mhs]\b|\bqps\b|(?<![\d=.])\d{1,4}(?:\.\d{1,9})? ?[smh]\b|retry in \d"
)
_LONG_WINDOW = lazy_regex(
    r"(?:per|/|each|every|current|last) ?[-_]?(?:day|week|month|24[- ]?h)|\b[tr]pd\b|\b(?:dai|week|month)ly"
    # A clock or a calendar says when: windows of people, not of seconds.
    r"|\b(?:resets?|available|renews?|(?:try|use it|continue) again|until)\b(?: again)?(?: (?:at|on|by|after))? ?"
    r"(?:\d{1,2}(?::\d\d)? ?[ap]m\b|(?:mon|tues|wednes|thurs|fri|satur|sun)day|tomorrow|midnight"
    r"|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.? \d)|\b(?:in|after) \d{1,3} ?d(?:ays?)?\b"
)
_STOPPED = lazy_regex(
    r"\b(?:cancell?ed|interrupted|aborted|stopped|terminated|killed) by (?:the |its )?(?:user|owner|administrator|operator|client)\b|\buser (?:has )?(?:cancell?ed|interrupted|aborted)\b"
    r"|^\W{0,3}(?:(?:fatal )?error: |failed: )?(?:the |this )?(?:operation|request|run|task|job|query|step|build|workflow|pipeline|execution|statement|command)"
    r"(?: was| has been| is)? cancell?ed\W{0,3}$"
    # Slurm prints when it was cancelled, and the time limit where that was the cause.
    r"|\bcancell?ed at \d{4}-\d\d-\d\dt[\d:]{5,8}+(?! due to)|^\^c\W{0,3}$|\bcancell?ing (?:\w{1,20} )?due to (?:user|request)",
    re.MULTILINE,
)
_COMPARED = lazy_regex(r"\d\)? ?[<>]=? ?|[<>]=? ?\d|\d\)? must be (?:less|smaller|at most|no more)\b")
_SHAPE = lazy_regex(r"\b(?:dim(?:ension)?s?|shapes?|tensors?|vectors?)\b")
_NUMBER = lazy_regex(r"\d+")
_WRAPPED = lazy_regex(r"(?<=[\w,])[ \t]*\n[ \t]*(?=[a-z]{2,} ?[a-z])")
_PAGE = ("<!doctype html", "<html")
_TAG = lazy_regex(r"</?[a-z][^<>]{0,300}+>")
_HEADING = lazy_regex(r"<(title|h[1-3])\b[^<>]{0,200}+>([^<>]{1,200}+)<")
_statements: "dict[int, Statement]" = {}


class Statement(NamedTuple):
    """What a text says: the rows that hold, the first of them first, and every concept that it mentions."""

    cells: tuple[Cell, ...]
    concepts: frozenset[str]
    names_short_window: bool
    names_long_window: bool
    compares_numbers: bool
    """Whether a number is said to be above or below another: `4270 >= 4096`."""
    compares_shapes: bool
    """Whether it speaks of the shape of a vector or a tensor and of two sizes."""
    was_stopped: bool
    """Whether somebody stopped the work on purpose."""

    def has(self, kind: str, *, beside_a_status: bool = False) -> bool:
        """Whether a row of that kind holds; beside a status, one that counts there."""
        return any(cell.kind == kind and not (beside_a_status and cell.without_status) for cell in self.cells)


def words_of(message: str) -> str:
    """What a message says in words, in lower case: the beginning of it, or the title and the headings of a page.

    The rest of a page is written for people who look at a site: links, styles, an id, a word about the company.
    """
    text = message[:_LONGEST]
    low = text.lower()
    if (low[:1] != "<" and not low[:1].isspace()) or not low.lstrip().startswith(_PAGE):
        if "</" in low:
            low = text = _TAG.sub(" ", low)
        # A sentence that was wrapped is one sentence.
        return _WRAPPED.sub(" ", text).lower() if "\n" in text else low
    return "\n".join([heading for _, heading in _HEADING.findall(low)])


def statement_of(low: str) -> Statement:
    """What the lower-cased message of an error says."""
    key = hash(low.translate(_NUMBERS))
    known = _statements.get(key)
    if known is not None:
        return known
    hits = LEXICON.read(low)
    statement = Statement(
        cells_of(hits),
        frozenset(concept for _, _, concept in hits),
        names_short_window=_SHORT_WINDOW.search(low) is not None,
        names_long_window=_LONG_WINDOW.search(low) is not None,
        compares_numbers=_COMPARED.search(low) is not None,
        compares_shapes=_SHAPE.search(low) is not None and len(_NUMBER.findall(low[:400])) > 1,
        was_stopped=_STOPPED.search(low) is not None,
    )
    if len(_statements) >= _MOST_TEXTS:
        _statements.clear()
    _statements[key] = statement
    return statement


@cache
def _signs_of_used_up() -> tuple[list[str], list[str]]:
    """Pieces of text, one of which must occur for a row to hold that says more than a full window does; Chinese ones apart."""
    cells = [
        cell
        for cell in CELLS
        # Half of all rate limits name the account, so `out of` stands for what is said of one that is used up.
        if not cell.elsewhere
        and "account" not in cell.subjects
        and (cell.kind == QUOTA or (cell.kind == LONG and cell.strong))
    ]
    needed = {
        concept for cell in cells for concept in (cell.states if cell.subjects & _COMMON else cell.subjects)
    }
    words = [form for _, concept, word in alternatives() if concept in needed for form in forms(word)]
    firsts = [word.partition(" ")[0] for word in words if " " in word]
    # Of `too long`, `too large` and `too many` the word that they begin with.
    words = [f"{first} " if firsts.count(first := word.partition(" ")[0]) > 1 else word for word in words]
    signs = dict.fromkeys(words)
    signs = [word for word in signs if not any(other in word for other in signs if other != word)]
    return [word for word in signs if word.isascii()] + ["pd", "resets ", "out of "], [
        word for word in signs if not word.isascii()
    ]


def may_be_used_up(low: str) -> bool:
    """Whether a full window may be more than that, by a look that is quicker than reading the text."""
    signs, chinese = _signs_of_used_up()
    for sign in signs if low.isascii() else signs + chinese:  # noqa: SIM110  (a generator takes twice as long)
        if sign in low:
            return True
    return False


def forget() -> None:
    """Drop what is remembered: the rows or the words have changed."""
    _statements.clear()
