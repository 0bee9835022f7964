"""The work: a function with `@capability`. Worker processes run it; the web process only submits it."""

from collections import Counter

from failwell.capability import CapabilityInputError, capability


@capability
def count_words(text: str, most: int = 3) -> dict[str, int]:
    """The most frequent words of a text."""
    if not text.strip():
        raise CapabilityInputError("the text is empty", fields_invalid=["text"])
    return dict(Counter(text.lower().split()).most_common(most))
