"""Find memories with the local ranker, for a prompt or a search. Everything here blocks.

Rules of this file
- The directory is read first, so that the rows of the search are those of its files now.
- Nothing is marked as surfaced: the service decides on the event loop which memories are sent.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple, Protocol

from msgspec import Struct

from memd.base import limits
from memd.base.names import LOGS, TEAM
from memd.base.settings import Settings
from memd.base.team import Author
from memd.base.values import (
    FOREIGN,
    PERSON,
    PERSONAL,
    Header,
    MemoryFile,
    Project,
    newest_first,
)
from memd.recall import block, select
from memd.recall.logs import RecentLogs, recent_paths
from memd.recall.own_rules import OwnRules, own_rules
from memd.recall.query import Query, parse
from memd.recall.rank import Ranked, heaviest_first, rank, score, weigh, with_cuts
from memd.recall.select import Prompt, SurfacedMemory
from memd.state.ledger import Item
from memd.state.search import SearchRow, WordSearch, rarest_first
from memd.text.words import words

_CANDIDATES = 300  # memories that are considered
_ROWS_AT_ONCE = 60  # of them that are scored; more gave no better results on six sets (recall.md)
_LEAST_SCORED = 50  # that nothing excludes, if there are so many
_RULES = 40  # memories that are read for the person's own rules
_MEMORIES_AT_ONCE = 50  # read at once, when each memory has to be read


# Returns which rows are excluded: name and reason by path.
Reasons = Callable[[Iterable[SearchRow]], dict[str, tuple[str, str]]]


class Reader(Protocol):
    """The methods of the store that recall uses; they block."""

    def headers(self, directory: str, real: str = "") -> tuple[Header, ...]:
        """Return all headers, newest first; raises the errors of reading a directory.

        ``real`` is the directory's real path, if the caller knows it.
        """
        ...

    def known_headers(self, directory: str) -> Iterable[Header]:
        """Return the headers of the last look, in any order; raises the same."""
        ...

    def read_many(
        self, directory: str, paths: Sequence[str], real: str = ""
    ) -> tuple[MemoryFile, ...]:
        """Return memories in the given order; those that cannot be read are left out."""
        ...

    def texts(
        self, directory: str, paths: Sequence[str], most: int
    ) -> dict[str, tuple[bytes, int]]:
        """Return content and time of change (ns) of files of at most ``most`` bytes, by path.

        Files that do not exist or cannot be read are left out.
        """
        ...


class Authorship(Struct, frozen=True):
    """Functions that find the author of a text by its directory, path and hash; they may block.

    ``own`` returns whether memd wrote it, ``author`` the member of a team who did, and ``joined``
    whether a directory belongs to a team.
    """

    own: Callable[[str, str, str], bool] = lambda *_: True
    author: Callable[[str, str, str], Author | None] = lambda *_: None
    joined: Callable[[str], bool] = lambda _: False


# Returns the hashes of the distilled logs of a directory, by path.
Distilled = Callable[[str], Mapping[str, str]]


class RecalledMemory(Struct, frozen=True):
    """A memory that may be sent, or lines of a daily log, and its entry for the ledger."""

    memory: SurfacedMemory
    item: Item
    is_log: bool = False


class Hit(Struct, frozen=True):
    """A result of a search; ``path`` is relative to the memory directory.

    ``origin`` is the origin that the memory's frontmatter names.
    """

    path: str
    name: str
    description: str
    score: float
    snippet: str
    origin: str


class DirectoryPaths(NamedTuple):
    """A memory directory by the path that clients use, and its real path."""

    directory: str
    real: str


class Selection(Struct, frozen=True):
    """The ranker's selection for a prompt, from ``count`` memories.

    ``ranked`` are all memories that were scored, for an explanation only; ``excluded`` has name and
    reason of others by path.
    ``options`` are the headers that a model may choose ``most`` of. ``empty`` says that there was
    nothing to choose from.
    """

    place: DirectoryPaths
    candidates: tuple[RecalledMemory, ...]
    ranked: Sequence[Ranked]
    excluded: Mapping[str, tuple[str, str]]
    options: Sequence[Header]
    most: int
    count: int
    empty: bool


class Finder:
    """Finds the memories of a directory by their words."""

    def __init__(
        self,
        reader: Reader,
        search: WordSearch,
        authorship: Authorship,
        distilled: Distilled = lambda _: {},
    ) -> None:
        self._reader = reader
        self._search = search
        self._authorship = authorship
        self._distilled = distilled

    def select(
        self,
        project: Project,
        settings: Settings,
        prompt: Prompt,
        surfaced: Mapping[str, str],
        now: float,
        *,
        for_model: bool,
    ) -> Selection:
        """Return the memories that fit a prompt best.

        ``surfaced`` are those that the session got already: absolute path to hash. Raises the
        errors of reading a directory, and Storage.
        """
        place = DirectoryPaths(project.memory_dir, os.path.realpath(project.memory_dir))
        headers = self._reader.headers(*place)
        team = settings.team.used(joined=self._authorship.joined(place.real))
        reasons = partial(select.reasons, place=place, prompt=prompt, surfaced=surfaced, team=team)
        query = parse(prompt.query)
        most = settings.recall.limit if prompt.limit is None else max(prompt.limit, 1)
        most = min(most, select.MOST_MEMORIES)
        # What is below the floor is of interest only to a model and an explanation.
        floor = not for_model and not prompt.explain
        least = _CANDIDATES if for_model else _LEAST_SCORED
        scored, excluded, counts = self._score(
            place.real, query, len(headers), reasons, floor=floor, least=least
        )
        logs = self._logs(place, now, surfaced)
        log_lines = logs.scored(query, counts, len(headers), floor=True) if logs else []
        excluded |= reasons(each.row for each in log_lines)
        scored += [each for each in log_lines if each.row.path not in excluded]
        best = [item.row.path for item in rank(scored, most)]
        options: list[Header] = []
        is_small = len(headers) <= limits.MANIFEST_ENTRIES
        if is_small and (for_model or not best):
            left_out = reasons(headers)
            options = [header for header in headers if header.path not in left_out]
        elif for_model:
            all_ranked = rank(scored, limits.MANIFEST_ENTRIES, floor=False)
            ranked_paths = {item.row.path for item in all_ranked}
            options = [header for header in headers if header.path in ranked_paths]
        return Selection(
            place,
            candidates=self.candidates(place, prompt.index, best, now, logs),
            ranked=with_cuts(scored, most) if prompt.explain else (),
            excluded=excluded,
            options=options,
            most=most,
            count=len(headers),
            empty=is_small and not best and not options,
        )

    def candidates(
        self,
        place: DirectoryPaths,
        index: str,
        paths: Sequence[str],
        now: float,
        logs: RecentLogs | None = None,
    ) -> tuple[RecalledMemory, ...]:
        """Return the memories, and lines of ``logs``, at these paths as candidates.

        Left out are memories that cannot be read, and those that say no more than their line in the
        ``index`` that the session has.
        """
        result = []
        for file in self._files(place, paths, logs):
            path = file.header.path
            text = (place.real, path, file.hash)
            is_own = file.header.origin in {"", *FOREIGN} or self._authorship.own(*text)
            author = self._authorship.author(*text) if path.startswith(TEAM) else None
            memory = select.surfaced_memory(place.directory, file, now, own=is_own, author=author)
            line = next((line for line in index.splitlines() if f"]({path})" in line), "")
            sent_memory = block.without_repetition(memory, line) if line else memory
            if sent_memory is not None:
                item = Item(memory.path, file.hash, len(memory.content.encode()))
                result.append(RecalledMemory(sent_memory, item, path.startswith(f"{LOGS}/")))
        return tuple(result)

    def own_rules(self, directory: str, room: int) -> OwnRules:
        """Return the person's own rules for a session's start, in ``room`` UTF-16 units.

        Raises Refused and Storage.
        """
        real = os.path.realpath(directory)
        headers = [
            header
            for header in self._reader.known_headers(directory)
            if header.origin == PERSON and header.type in PERSONAL
        ]
        headers.sort(key=newest_first)
        own = (each for each in headers if self._authorship.own(real, each.path, each.hash))
        hashes = {header.path: header.hash for header in islice(own, _RULES)}
        files = self._reader.read_many(directory, tuple(hashes), real)
        # What another program wrote since the last look is no rule, whatever it says of itself.
        rules = (
            file
            for file in files
            if file.hash == hashes[file.header.path]
            or self._authorship.own(real, file.header.path, file.hash)
        )
        return own_rules(rules, room)

    def items(self, directory: str, paths: Collection[str]) -> tuple[Item, ...]:
        """Return ledger entries, of 0 bytes, for memories that a session already has."""
        files = self._reader.read_many(directory, sorted(paths))
        return tuple(Item(f"{directory}/{file.header.path}", file.hash, 0) for file in files)

    def search(self, directory: str, query: str, most: int, now: float) -> tuple[Hit, ...]:
        """Return the memories that have a word of a query, the best first.

        Words as common as "who" are not searched for; for a query of nothing else it is the
        memories that have the words as they are written, the newest first. Raises the errors of
        ``select``.
        """
        real = os.path.realpath(directory)
        headers = self._reader.headers(directory, real)
        if not words(query):
            return tuple(islice(self._literal_hits(directory, headers, query), most))
        least, parsed = max(most, _LEAST_SCORED), parse(query)
        scored, _, counts = self._score(real, parsed, len(headers), floor=False, least=least)
        place = DirectoryPaths(directory, real)
        logs = self._logs(place, now, {})
        log_lines = logs.scored(parsed, counts, len(headers), floor=False) if logs else []
        best = rank([*scored, *log_lines], most, floor=False)
        files = self._files(place, [item.row.path for item in best], logs)
        file_of = {file.header.path: file for file in files}
        return tuple(
            _hit(file.header, item.score, select.snippet(file.body, item.terms))
            for item in best
            if (file := file_of.get(item.row.path)) is not None
        )

    def _score(
        self,
        directory: str,
        query: Query,
        memories: int,
        reasons: Reasons = lambda _: {},
        *,
        floor: bool,
        least: int,
        at_most: int = _CANDIDATES,
    ) -> tuple[list[Ranked], dict[str, tuple[str, str]], dict[str, int]]:
        """Return the scored memories that have a word of a query, and what ``reasons`` excluded.

        The last is how many memories have each word, of those that any has. The directory has so
        many ``memories``. Those with the rarest words count, ``at_most`` so many; of these the
        ``least`` or some more with the heaviest words are scored. With ``floor`` a word counts only
        if it can bring a memory to its floor.
        """
        ids_of = self._search.find(directory, query.words)
        counts = {word: len(ids) for word, ids in ids_of.items()}
        terms = weigh(query, counts, memories)
        wanted = {word: ids_of[word] for word in terms.bringing} if floor else ids_of
        ids = rarest_first(wanted, at_most, memories)
        candidates = heaviest_first(terms, ids_of, ids)
        scored, excluded, count = list[Ranked](), dict[str, tuple[str, str]](), 0
        last = 0.0  # weight; of those that weigh the same all are scored
        while candidates and (count < least or candidates[0][2] == last):
            part, candidates = candidates[:_ROWS_AT_ONCE], candidates[_ROWS_AT_ONCE:]
            rows, last = self._search.rows([id_ for id_, *_ in part]), part[-1][2]
            excluded |= reasons(rows.values())
            for id_, forms, _ in part:
                row = rows.get(id_)
                if row is not None and row.path not in excluded:
                    count += 1
                    scored += filter(None, [score(terms, row, forms)])
        # There are enough of those that nothing excludes, however many are excluded.
        if count < _LEAST_SCORED and len(ids) == at_most:
            return self._score(
                directory,
                query,
                memories,
                reasons,
                floor=floor,
                least=least,
                at_most=4 * at_most,
            )
        return scored, excluded, counts

    def _files(
        self, place: DirectoryPaths, paths: Sequence[str], logs: RecentLogs | None
    ) -> Iterator[MemoryFile]:
        """Yield the memories, and lines of ``logs``, at these paths; others are left out."""
        files = {path: file for path in paths if logs and (file := logs.file(path))}
        memories = [path for path in paths if path not in files]
        for file in self._reader.read_many(place.directory, memories, place.real):
            files[file.header.path] = file
        return (files[path] for path in paths if path in files)

    def _logs(
        self, place: DirectoryPaths, now: float, surfaced: Mapping[str, str]
    ) -> RecentLogs | None:
        """Return the logs of the last days that no dream has distilled, if there are logs."""
        if not os.path.isdir(f"{place.real}/{LOGS}"):
            return None
        texts = self._reader.texts(place.real, recent_paths(now), limits.LOG_BYTES)
        root = f"{place.directory}/"
        given = {path.removeprefix(root): mark for path, mark in surfaced.items()}
        return RecentLogs(texts, self._distilled(place.real), given)

    def _literal_hits(self, directory: str, headers: Sequence[Header], query: str) -> Iterator[Hit]:
        """Yield the memories that have each word of a query as it is written, the newest first."""
        searched = query.casefold().split()
        for start in range(0, len(headers) if searched else 0, _MEMORIES_AT_ONCE):
            paths = [header.path for header in headers[start : start + _MEMORIES_AT_ONCE]]
            for file in self._reader.read_many(directory, paths):
                header = file.header
                lines = [header.path, header.name, header.description, *file.body.splitlines()]
                folded = "\n".join(lines).casefold()
                if all(word in folded for word in searched):
                    line = next((one for one in lines if searched[0] in one.casefold()), "")
                    yield _hit(header, 0.0, select.snippet_of_line(line))


def _hit(header: Header, score: float, snippet: str) -> Hit:
    """Return a result of a search."""
    facts = (header.path, header.name, header.description)
    return Hit(*facts, score, snippet, header.origin)
