"""Whether a date that came into a person's sentence is the one that the sentence means. Pure.

Rules of this file
- Only where ``core/dates.py`` finds a relative date is there one to add: "never on a Friday" has
  none, and with one it would be over.
- The date is the one that was meant when the memory was written, give or take a week: nobody can
  tell which Thursday somebody had in mind, nor in which time zone.
"""

from collections.abc import Collection, Iterator

from memd.core import instants
from memd.documents.document import Document
from memd.dream.verbatim import DATED
from memd.text.dates import resolve

_DAY = 86_400.0
_DAYS = range(-7, 8)


def written(document: Document, mtime: float | None) -> Iterator[float]:
    """Yield when a memory may have been written, in seconds since 1970: its stamp, its mtime."""
    stamp = instants.written(document.metadata.get("modified", ""))
    yield from (at for at in (stamp, mtime) if at is not None)


def wrong(sentence: str, times: Collection[float]) -> bool:
    """Whether a sentence has a date in brackets that it does not mean.

    ``times`` are those at which it may have been written.
    """
    found = frozenset(_dates(sentence))
    plain = DATED.sub("", sentence)
    days = (at + day * _DAY for at in times for day in _DAYS)
    right = frozenset(date for at in days for date in _dates(resolve(plain, at)))
    return not found <= right


def _dates(sentence: str) -> Iterator[tuple[int, str]]:
    """Yield each date in brackets with its place in the sentence without them."""
    passed = 0
    for match in DATED.finditer(sentence):
        yield match.start() - passed, match.group().strip()
        passed += len(match.group())
