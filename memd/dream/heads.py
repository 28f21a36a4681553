"""What may stand in the head of a person's rule after a dream: what stood there, and stamps. Pure.

Rules of this file
- What memd reads there is held against the rules of before elsewhere. But people and other programs
  read the lines: a comment, a second type or a folded text says to them what memd does not see.
- So each line stood in the head of a rule before, or is a plain one that memd itself would write.
"""

import re
from collections.abc import Iterable, Iterator

from memd.documents.document import Document, plain, split

_SAID = re.compile(r"(?:name|description): ")
_STAMPS = re.compile(r"metadata:|[ ]*(?:node_type: memory|modified: [\dTZ:.+\"-]+|"
                     r"originSessionId: [\w\"-]{1,100})")  # fmt: skip


def foreign(content: bytes, document: Document, known: Iterable[bytes]) -> str:
    """Return the first line of a rule's head that it may not have, "" for none.

    ``known`` are the rules of before.
    """
    stood = frozenset(line for rule in known for line in _lines(rule))
    kind = f"type: {document.type}"
    own = (line for line in _lines(content) if line not in stood and line.strip() != kind)
    return next((line for line in own if not _is_plain(line)), "")


def _lines(content: bytes) -> Iterator[str]:
    fenced = split(content)
    return iter(()) if fenced is None else (line.rstrip() for line in fenced.lines)


def _is_plain(line: str) -> bool:
    if _SAID.match(line):
        return " #" not in line and plain((line,)) is not None
    return not line or _STAMPS.fullmatch(line) is not None
