"""Texts that readers were given a moment ago, so that an edit of one can be merged.

The journal has every text that memd wrote or noticed. If a person saves twice between two looks, it
lacks the first text, but a client may have read that one and now edit it; without the text here
the edit would be a conflict. The texts are only in memory, since a read must not wait for the disk.
"""

from threading import Lock

from memd.base import limits


class RecentTexts:
    """The texts most recently given to readers, by hash; ``most`` bytes. Thread-safe."""

    def __init__(self, most: int = limits.SERVED_BYTES) -> None:
        self._most = most
        self._size = 0  # bytes of all texts
        self._bodies: dict[str, bytes] = {}  # by hash; the oldest comes first
        self._lock = Lock()  # guards both

    def add(self, text_hash: str, body: bytes) -> None:
        """Remember a text by its hash; when there are too many bytes, drop the oldest texts.

        A text larger than a memory may be is not remembered: an edit of it would be refused.
        """
        if len(body) > limits.MEMORY_BYTES:
            return
        with self._lock:
            replaced = self._bodies.pop(text_hash, b"")  # the same text: it becomes the newest
            self._bodies[text_hash] = body
            self._size += len(body) - len(replaced)
            while self._size > self._most:
                oldest_hash = next(iter(self._bodies))
                self._size -= len(self._bodies.pop(oldest_hash))

    def clear(self) -> None:
        """Forget all texts."""
        with self._lock:
            self._bodies.clear()
            self._size = 0

    def get(self, text_hash: str) -> bytes | None:
        """Return the text with this hash, or ``None``."""
        with self._lock:
            return self._bodies.get(text_hash)
