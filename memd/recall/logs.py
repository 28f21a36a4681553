"""Find lines of the daily logs of the last 14 days that no dream has distilled, for a prompt.

A log is no memory and has no row: it is read when a prompt comes, and each line is scored like a
memory of one line. A log comes with those of its lines that a prompt brings, as quoted text; its
mark in the ledger names them, so that a session gets no line twice. Everything here blocks.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from msgspec.structs import replace

from memd.base.names import LOGS
from memd.base.text import decode, sha256
from memd.base.values import AGENT, Header, MemoryFile
from memd.recall.query import Query
from memd.recall.rank import ASSUMED_MEMORIES, Ranked, rank, score, weigh
from memd.state.search import SearchRow
from memd.text.words import words

_DAYS = 14
_MOST_LINES = 20  # of a log that come at once
_LAST_LINES = 5_000  # of a log that count; one of 256 KiB has fewer unless they are very short
_CACHED_LOGS = 32
_MARK = "[0-9a-f]{8}"  # the beginning of the hash of a line
# Without bullet, time of day and the mark of the person's words, which many lines have.
_LINE = re.compile(r"^[\s*-]*(?:\d\d?:\d\d\s)?(?:user said: )?(.*)$")


def recent_paths(now: float) -> list[str]:
    """Return the paths that the logs of the last 14 days have, the newest first."""
    # The day is the one of the client's conversation, which may be a day ahead.
    days = (datetime.fromtimestamp(now, UTC) - timedelta(day) for day in range(-1, _DAYS + 1))
    return [day.strftime(f"{LOGS}/%Y/%m/%Y-%m-%d.md") for day in days]


class RecentLogs:
    """Some logs as they are now: content and time of change in ns by path.

    Those in ``distilled``, hashes by path, are left out. ``given`` has the mark of what the session
    has of logs, by path.
    """

    def __init__(
        self,
        contents: Mapping[str, tuple[bytes, int]],
        distilled: Mapping[str, str],
        given: Mapping[str, str],
    ) -> None:
        self._given = given
        texts = {path: decode(content) for path, (content, _) in contents.items()}
        self._texts = {
            path: text
            for path, text in texts.items()
            if distilled.get(path) != sha256(text.encode())
        }
        self._times = {path: mtime_ns for path, (_, mtime_ns) in contents.items()}
        # By path: the lines that a prompt brings, and the mark of all that the session has then.
        self._lines: dict[str, tuple[str, str]] = {}

    def scored(
        self, query: Query, counts: Mapping[str, int], memories: int, *, floor: bool
    ) -> list[Ranked]:
        """Return the logs that have a line for a prompt, each as its best line is ranked.

        ``counts`` is how many of the directory's ``memories`` have each word.
        """
        logs = {path: _rows(path, text) for path, text in self._texts.items()}
        # A word that many lines have is as common as one that as large a part of the memories has.
        count = sum(len(rows) for rows, _ in logs.values())
        part = (memories + ASSUMED_MEMORIES) / (count + ASSUMED_MEMORIES)
        counts = dict(counts)
        for word in query.words:
            if lines := sum(all_words.count(f" {word} ") for _, all_words in logs.values()):
                counts[word] = counts.get(word, 0) + max(1, round(part * lines))
        terms = weigh(query, counts, memories)
        result = []
        for path, (rows, all_words) in logs.items():
            forms = [form for form in terms.forms if form.spaced in all_words]
            hashes = re.findall(_MARK, self._given.get(path, ""))
            ranked = [
                score(terms, row, own)
                for row in (rows if forms else ())
                if row.hash not in hashes
                and (own := [form for form in forms if form.spaced in row.words])
            ]
            best = rank(filter(None, ranked), _MOST_LINES, floor=floor)
            if best:
                brought = [rows[number] for number in sorted(item.row.mtime_ns for item in best)]
                mark = "".join([*hashes, *(row.hash for row in brought)])
                self._lines[path] = "\n".join([row.description for row in brought]), mark
                log = replace(best[0].row, hash=mark, mtime_ns=self._times[path])
                result.append(replace(best[0], row=log))
        return result

    def file(self, path: str) -> MemoryFile | None:
        """Return the lines of a log that a prompt brings, as a memory from outside the person."""
        if path not in self._lines:
            return None
        text, mark = self._lines[path]
        content = text.encode()
        facts = (self._times[path], len(content), False, mark, AGENT)
        return MemoryFile(Header(path, _name(path), "", None, *facts), content, mark, 0)


@lru_cache(_CACHED_LOGS)
def _rows(path: str, text: str) -> tuple[tuple[SearchRow, ...], str]:
    """Return the lines of a log, each with its number in place of a time, and all their words."""
    rows: list[SearchRow] = []
    for line in [line for line in text.splitlines() if line.strip()][-_LAST_LINES:]:
        match = _LINE.match(line)
        line_words = "".join(f"{word} " for word in words(match.group(1) if match else line))
        if line_words:
            mark = sha256(line.encode())[:8]
            facts = (len(rows), _name(path), line.strip(), None, f" {line_words}", len(line_words))
            rows.append(SearchRow(path, mark, *facts))
    return tuple(rows), "".join([row.words for row in rows])


def _name(path: str) -> str:
    """Return the name that a log is shown with."""
    return f"log of {path.rpartition('/')[2].removesuffix('.md')}"
