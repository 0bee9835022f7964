"""Whether a word looks drawn at random, as keys are, or written by a person, as names are."""

from failwell.errors.lazy_regex import lazy_regex

_CHANGE = lazy_regex(r"[a-z](?=[A-Z0-9])|[A-Z](?=[a-z0-9])|[0-9](?=[A-Za-z])")
_DIGIT = lazy_regex(r"[0-9]")
_LETTER = lazy_regex(r"[A-Za-z]")
_IDENTIFIER = lazy_regex(r"[A-Z]?[a-z]+(?:[A-Z][a-z]+)*+[0-9]{0,4}")
_CAPITAL = lazy_regex(r"[A-Z]")


def is_random(word: str) -> bool:
    """Whether `word` is masked as a secret: upper case, lower case and digits alternate as in a key, and not as in a name."""
    changes = len(_CHANGE.findall(word))
    size = len(word)
    if size < 8 or changes < 3:
        return False
    if _DIGIT.search(word):
        return changes >= 2 + size * 0.1
    # Letters alone: names have few capitals, random letters as many as small ones.
    capitals, letters = len(_CAPITAL.findall(word)), len(_LETTER.findall(word))
    return size >= 10 and 0.2 <= capitals / letters <= 0.8 and changes >= 2 + size * 0.2


def is_mixed(word: str) -> bool:
    """Whether a short word is no plain word: letters with digits, or capitals inside."""
    if len(word) < 6:
        return False
    if _DIGIT.search(word):
        return any(map(str.isalpha, word))
    letters = "".join(filter(str.isalpha, word))
    capitals = sum(map(str.isupper, letters[1:]))
    return 0 < capitals < len(letters) - 1


def is_identifier(word: str) -> bool:
    """Whether `word` is written as names in code are: two words or more with capitals, and a number at the end."""
    if not _IDENTIFIER.fullmatch(word):
        return False
    words = len(_CAPITAL.findall(word)) + word[0].islower()
    return words > 1 and len(word.rstrip("0123456789")) >= 3 * words
