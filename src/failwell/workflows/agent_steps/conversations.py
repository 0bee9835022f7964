"""`session_key`: conversations that several visits of agents continue, kept in the folder of the run."""

from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from failwell.calls.suppress import catch
from failwell.errors.redact import redact_text
from failwell.store.private_files import replace_private
from failwell.workflows.running.files import CONVERSATION

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage


class Conversations:
    """The conversations of one run, by key. A file that cannot be read is a new conversation: it never fails the run.

    Args:
        folder: The private folder of the run.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, list[ModelMessage]] = {}

    def read(self, key: str) -> "list[ModelMessage]":
        """The messages so far."""
        messages = self._open.get(key)
        if messages is None:
            messages, _ = catch(self._load, key)
        return list(messages or ())

    def keep(self, key: str, messages: "list[ModelMessage]") -> None:
        """Keep the messages for the next visit, also after a crash."""
        from pydantic_ai.messages import ModelMessagesTypeAdapter

        self._open[key] = list(messages)
        text = ModelMessagesTypeAdapter.dump_json(messages).decode()
        replace_private(self._file(key), redact_text(text, 2 * len(text) + 100))

    def _load(self, key: str) -> "list[ModelMessage]":
        from pydantic_ai.messages import ModelMessagesTypeAdapter

        file = self._file(key)
        return ModelMessagesTypeAdapter.validate_json(file.read_bytes()) if file.exists() else []

    def _file(self, key: str) -> Path:
        return self._folder / f"{CONVERSATION}{blake2b(key.encode(), digest_size=12).hexdigest()}.json"
