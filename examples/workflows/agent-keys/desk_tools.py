"""The tools of the desk."""


def count_words(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())
