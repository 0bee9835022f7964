"""What one kind is: a stable name and everything that follows from it."""

from failwell.errors.axes import ActionKind, Blame, Category, Certainty
from failwell.errors.frozen import frozen


@frozen
class Kind:
    """One stable name for one way to fail, and what follows from it."""

    name: str
    category: Category
    certainty: Certainty
    """The certainty, unless the evidence shows another one."""
    blame: Blame
    title: str
    """Three or four words, for a heading."""
    summary: str
    """One sentence a person can read; it names no value."""
    action: ActionKind
    advice: str
    """The next step as one sentence to that person."""
    status: int
    """The HTTP status of a response for this failure."""
    policy: str = "none"
    """Name of the retry policy that applies by default."""
    resubmit: bool
    """Whether it makes sense for a person to submit the same work again."""
    model_keys: tuple[str, ...] = ()
    """Keys of `details` that a model may see."""
    owned: bool = False
    """Whether the runtime owns it."""
