"""A text as the concepts it mentions, clause by clause.

Names between quotes, addresses and model names are put aside first: what someone called a thing says nothing
about what happened to it. A negation turns the words after it (`not found`, `could not find`).
"""

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from failwell.adapters.words.lexicon import NEGATED, NEGATIONS, STATES, SUBJECTS
from failwell.errors.lazy_regex import lazy_regex

Hit = tuple[int, int, str]
"""Where a concept stands: its place in the text, the clause it is in, and its name."""

_LONGEST = 2_400
_NEGATION_REACH = 5
_MOST_HITS = 40
_NEVER = -100
_MANY = 2
"""Names of models that a text lists only to say which there are."""
_CLAUSE_END = "clause"
_SEPARATORS = str.maketrans("", "", "_-. ")
_MOST_CODES = 1024
_OTHER_WORDS = lazy_regex(
    # `oom`. A class that ends in `OOMError` or `OOMKilled` may have an `r` before it.
    r"zoom|bloom|toomuch|chatroom|^room|room(?!kill|err|exc|$)"
    # `balance` and `fund`, which are money, `plan`, `token` and `version`.
    r"|loadbalanc|^(?:re|un|im)balanc|refund|explanation|planner|planet|(?:control|data)plane|tokeniz|conversion"
)
"""Words with a word of the lexicon inside. A code is read without spaces, so `RoomNotFound` would speak of memory."""
_PLURAL = ("", "s", "ly")
_VERB = ("", "e", "s", "es", "d", "ed", "ing", "ion", "ions", "y", "ies")
_FAMILY = (
    r"(?:gpt|chatgpt|claude|gemini|gemma|(?:code|tiny)?llama(?![-_]?(?:index|cpp))|mi[sx]tral|qwen|deepseek|dall-e|grok"
    r"|command|glm|phi|o[134]-|text-embedding|whisper|flux|stable-diffusion|sdxl|kimi|nova|titan|jina|voyage|bge)[-./:]?[a-z0-9]"
)
_IS_MODEL = lazy_regex(rf"(?:^|[^a-z]){_FAMILY}|[-/_]model(?:$|[-/_:])|^models?[-/]")
_IS_FAMILY = lazy_regex(_FAMILY)
_NUMBER_ASIDE = lazy_regex(r"\(\d[\d.,]{0,20} ?[a-z]{0,12}\) ")
_BETWEEN = lazy_regex("[-=,:;+|&#]+")
_RUNS = lazy_regex(r"[a-z_]+|[一-鿿]+|[，。；：！？]")
_CHOICE = lazy_regex(r"\(([^()]*)\)")
_CHINESE = lazy_regex("[一-鿿]")
_COLON = ("", "", "")
"""A colon ends no clause (`pull model: no such file`), but what stands behind it is farther away."""
_OPENING, _QUOTES = "([{<\"'`", "\"'`"
_CLOSING = ")]}>\"'`.,;:!?"
_CLAUSE_ENDS = frozenset(".\n，。；：！？")
_PARTS = (["0"], ["alias"], ["aliases"], ["type"], ["types"], ["item"], ["items"], ["size"])
"""What stands behind `table` or `index` where that is no place for things: `index 5`, `table alias`."""
_ARTICLES = ("the", "this", "your", "a")


class _Word(NamedTuple):
    """What one word means, and what it means after a negation."""

    concept: str | None = None
    negated: str | None = None
    negates: bool = False
    phrases: tuple[tuple[tuple[str, ...], str | None, str | None], ...] = ()
    """Longer alternatives that begin with the word: the words after it, the concept, the concept if negated."""


@cache
def alternatives() -> tuple[tuple[str, str, str], ...]:
    """Every alternative of the lexicon: its table, its concept and how it is written."""
    rows: list[tuple[str, str, str]] = []
    for table, concepts in (("subject", SUBJECTS), ("state", STATES), ("negated", NEGATED)):
        rows += [(table, concept, word) for concept, words in concepts.items() for word in words.split("|")]
    return (*rows, *(("negation", "not", word) for word in NEGATIONS.split("|")))


def forms(word: str) -> tuple[str, ...]:
    """The spellings that an alternative stands for, with the negated ones."""
    prefix, stem = prefix_of(word)
    plain = _spellings(stem)
    return (*plain, *(prefix + spelling for spelling in plain)) if prefix else plain


def prefix_of(word: str) -> tuple[str, str]:
    """The prefix that negates an alternative, and the alternative without it: `in-valid`."""
    prefix, hyphen, stem = word.partition("-")
    return (prefix, stem) if hyphen else ("", word)


def _spellings(word: str) -> tuple[str, ...]:
    endings = {"~": _PLURAL, "*": _VERB}.get(word[-1], ("",))
    stems = [""]
    for place, part in enumerate(_CHOICE.split(word.rstrip("~*").replace("[sz]", "(s/z)"))):
        stems = [stem + piece for stem in stems for piece in (part.split("/") if place % 2 else (part,))]
    return tuple(stem + ending for stem in stems for ending in endings)


class Lexicon:
    """The alternatives as tables to read messages and codes of errors with."""

    def __init__(self, rows: Sequence[tuple[str, str, str]]) -> None:
        self.words: dict[str, _Word] = {}
        self.chinese: list[tuple[str, str]] = []
        for table, concept, written in rows:
            prefix, stem = prefix_of(written)
            for form in _spellings(stem):
                if _CHINESE.match(form):
                    self.chinese.append((form, concept))
                    continue
                self._add(table, concept, form)
                if prefix:
                    self._add("state", concept, prefix + form)
        for mark in _CLAUSE_ENDS:
            self.words[mark] = _Word(concept=_CLAUSE_END)
        self.words["<model>"] = _Word(concept="model_name")
        self.words["<name>"] = _Word(concept="name")
        spellings = [form for row in rows for form in forms(row[2]) if len(form) > 2 and form.isascii()]
        # Of `rate limit` and `rate limite` only the first: the letter belongs to the word after it.
        pieces = {form.replace(" ", "") for form in (*spellings, "not", "no")}
        pieces -= {piece for piece in pieces if piece.endswith("e") and piece[:-1] in pieces}
        self.codes = frozenset(pieces)
        self.longest = max(map(len, pieces))
        self.beginnings = frozenset(piece[:2] for piece in pieces)
        self.phrases = {form.replace(" ", ""): form for form in spellings if " " in form}

    def _add(self, table: str, concept: str, form: str) -> None:
        first, *rest = form.split(" ")
        word = self.words.get(first, _Word())
        if rest:
            meaning = (tuple(rest), None, concept) if table == "negated" else (tuple(rest), concept, None)
            phrases = tuple(sorted((*word.phrases, meaning), key=lambda phrase: -len(phrase[0])))
            word = word._replace(phrases=phrases)
        elif table == "negation":
            word = word._replace(negates=True)
        elif table == "negated":
            word = word._replace(negated=concept)
        else:
            word = word._replace(concept=concept)
        self.words[first] = word

    def read(self, low: str) -> list[Hit]:
        """The concepts in the lower-cased message of an error, in their order."""
        text = low[:_LONGEST]
        if "\n" in text:
            text = text.replace("\n", " \n ")
        if "’" in text:
            text = text.replace("’", "'")
        if "[" in text:
            text = text.replace("[", " [")
        if "(" in text:
            # A number in brackets interrupts no clause: `the request (4000 bytes) exceeds`.
            text = _NUMBER_ASIDE.sub("", text)
        words = self.words
        tokens: list[str] = []
        for piece in text.split(" "):
            if piece in words or piece.isalpha():
                tokens.append(piece)
            elif piece:
                self._take_apart(piece, tokens)
        return self._scan(tokens)

    def _take_apart(self, piece: str, tokens: list[str]) -> None:
        """The tokens of a piece with something else than letters in it. A dot stands for the end of a clause."""
        opened = piece.lstrip(_OPENING)
        core = opened.rstrip(_CLOSING)
        lead, tail = piece[: len(piece) - len(opened)], opened[len(core) :]
        if lead and lead[0] in "([{":
            if lead == "(" and tail[:1] == ")" and (tail == ")" or core in self.words):
                # One word in brackets interrupts no clause: `limit (total) exceeded`, `could not lock x (timeout).`
                tokens += [word for word in (core, "." if len(tail) > 1 else "") if word in self.words]
                return
            if lead == "[" and tail[:1] == "]" and core and core not in self.words:
                # A name in brackets is one in quotes: `collection [orders] does not exist`.
                lead, tail = "'", f"'{tail[1:]}"
            else:
                tokens.append(".")
        if core:
            if lead and lead[-1] in _QUOTES and tail and tail[0] in _QUOTES:
                tokens.append("<model>" if _IS_MODEL.search(core) else "<name>")
            else:
                self._take_core(core, tokens)
        if tail and tail.strip(_QUOTES + ">"):
            tokens += _COLON if tail.strip(_QUOTES) == ":" else (".",)

    def _take_core(self, core: str, tokens: list[str]) -> None:
        if core in self.words or core.isalpha():
            if core.isascii():
                tokens.append(core)
            else:
                tokens += _RUNS.findall(core)
        elif not core.isascii():
            tokens += _RUNS.findall(core)
        elif core.startswith("http"):
            return
        elif "'" in core:
            tokens.append(core if core.endswith("n't") else core.partition("'")[0])
        elif "/" in core or _has_digit(core):
            tokens.append(
                "<model>" if _IS_MODEL.search(core) else "<name>" if core.strip("0123456789.,:%") else "0"
            )
        elif "-" in core and _IS_FAMILY.match(core):
            tokens.append("<model>")
        elif "_" in core or "." in core:
            tokens.append(core if core.endswith("api_key") else "<name>")
        else:
            tokens += [part for part in _BETWEEN.split(core) if part]

    def read_code(self, code: str) -> list[Hit]:
        """The concepts of a code or a class name, which is written without spaces."""
        words: list[str] = []
        for piece, is_known in self._pieces(code.translate(_SEPARATORS)):
            if is_known:
                words += self.phrases.get(piece, piece).split(" ")
        return self._scan(words)

    def _pieces(self, compact: str) -> Iterator[tuple[str, bool]]:
        """A code in pieces, the longest words of the lexicon and what is between them, and whether each is such a word."""
        place = 0
        while place < len(compact):
            other = _OTHER_WORDS.match(compact, place)
            length = 0 if other is None else len(other[0])
            known = 0 if length else self._length_at(compact, place)
            yield compact[place : place + (length or known or 1)], known > 0
            place += length or known or 1

    def _length_at(self, compact: str, place: int) -> int:
        if compact[place : place + 2] not in self.beginnings:
            return 0
        for length in range(min(self.longest, len(compact) - place), 1, -1):
            if compact[place : place + length] in self.codes:
                return length
        return 0

    def covers(self, code: str) -> bool:
        """Whether a code is made of words of the lexicon alone."""
        return not self.rest_of(code.translate(_SEPARATORS))

    def rest_of(self, compact: str) -> str:
        """What is left of a code without its words of the lexicon."""
        return "".join(piece for piece, is_known in self._pieces(compact) if not is_known)

    def _scan(self, tokens: list[str]) -> list[Hit]:
        hits: list[Hit] = []
        words = self.words
        clause, negation, skip = 0, _NEVER, -1
        for place, token in enumerate(tokens):
            word = words.get(token)
            if word is None:
                if not token.isascii() or "_" in token or "'" in token:
                    turned = self._scan_other(token, place, clause, hits)
                    negation = negation if turned is None else turned
                continue
            if place <= skip:
                continue
            if word.concept == _CLAUSE_END:
                clause, negation = clause + 1, _NEVER
                continue
            is_negated = place - negation <= _NEGATION_REACH
            if word.phrases:
                concept, length = _phrase(word, tokens[place + 1 : place + 4], is_negated=is_negated)
                if concept is not None:
                    hits.append((place, clause, concept))
                    skip = place + length
                    continue
            concept = word.negated if is_negated and word.negated is not None else word.concept
            if concept is not None and not self._is_place(concept, tokens, place):
                if concept == "name" and hits and hits[-1] == (place - 1, clause, "model"):
                    concept = "model_name"
                hits.append((place, clause, concept))
            if word.negates:
                negation = place
        if sum(hit[2] == "model_name" for hit in hits) >= _MANY:
            hits.insert(0, (0, 0, "many_models"))
        return hits[:_MOST_HITS]

    def _is_place(self, concept: str, tokens: list[str], place: int) -> bool:
        """Whether a model or a container is where something else was looked for: `field not found in the model`, `index 5`."""
        if concept == "container":
            return tokens[place + 1 : place + 2] in _PARTS
        return concept == "model" and self._holds(tokens, place)

    def _holds(self, tokens: list[str], place: int) -> bool:
        """Whether something was looked for in a model, and not in `the model registry`."""
        before = tokens[max(0, place - 2) : place]
        if "in" not in before or (before[-1] != "in" and before[-1] not in _ARTICLES):
            return False
        return tokens[place : place + 1] == ["model"] and (
            place + 1 == len(tokens)
            or tokens[place + 1] in _CLAUSE_ENDS
            or tokens[place + 1] in ("<name>", "")
        )

    def _scan_other(self, token: str, place: int, clause: int, hits: list[Hit]) -> int | None:
        """A token that is no English word. The answer is its place, if it is a negation."""
        if token.endswith("n't"):
            return place
        if token.endswith("api_key"):
            hits.append((place, clause, "key"))
        elif not token.isascii():
            hits += [(place, clause, concept) for written, concept in self.chinese if written in token]
        return None


def _phrase(word: _Word, following: list[str], *, is_negated: bool) -> tuple[str | None, int]:
    """The longest alternative that begins with a word, and how many words it has beside that one."""
    for rest, concept, negated in word.phrases:
        meaning = negated if is_negated and negated is not None else concept
        if meaning is not None and tuple(following[: len(rest)]) == rest:
            return meaning, len(rest)
    return None, 0


def _has_digit(text: str) -> bool:
    return not text.isalpha() and any(letter in text for letter in "0123456789")


LEXICON = Lexicon(alternatives())


@lru_cache(maxsize=_MOST_CODES)
def concepts_of_code(code: str) -> tuple[Hit, ...]:
    """The concepts of a code. The same few codes come again in every failure of a service."""
    return tuple(LEXICON.read_code(code))
