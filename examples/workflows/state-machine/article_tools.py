"""The tools of the example. A real one would search, and publish somewhere."""


def look_up(word: str) -> str:
    """Look up a word."""
    return f"{word}: water that falls"


def publish(title: str) -> str:
    """Publish the article."""
    return f"published: {title}"
