"""Select memories with the local ranker: the part of prefetch that runs in a worker thread.

It blocks only on the disk; the caller limits the time. It marks nothing as surfaced: the service
decides on the event loop which candidates are sent.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct, field
from msgspec.structs import replace

from memd.base import limits
from memd.base.settings import Settings, TeamSettings
from memd.base.team import Author
from memd.base.text import iso_time
from memd.base.values import Header, MemoryFile, Project
from memd.recall import block, explain, select
from memd.recall.indexes import Indexes, Reader
from memd.recall.select import Prompt, SurfacedMemory
from memd.search.index import Index
from memd.search.ranking import Ranked, answered
from memd.state.ledger import Item, Ledger
from memd.text.words import words

# Waiting for the index takes this share of a deadline, and at most so long (indexing 5,000 memories
# takes 0.6 s).
_WAIT_SHARE = 0.5
_WAIT_SECONDS = 1.0
_MEMORIES_AT_ONCE = 50  # memories indexed between two checks of the deadline (some 10 ms)


class Authorship(Struct, frozen=True):
    """Functions that find the author of a text by its directory, path and hash; they may block.

    ``own`` returns whether memd wrote it, ``author`` the member of a team who did, and ``joined``
    whether a directory belongs to a team.
    """

    own: Callable[[str, str, str], bool] = lambda *_: True
    author: Callable[[str, str, str], Author | None] = lambda *_: None
    joined: Callable[[str], bool] = lambda _: False


class RecallRequest(Struct, frozen=True):
    """A prompt, and the limits of its result.

    ``surfaced`` are the memories that the session already got: absolute path to fingerprint.
    ``options`` is how many memories to list for a model, 0 for none. ``until`` is the monotonic
    second at which waiting for the index ends.
    """

    directory: str
    query: str
    limit: int
    surfaced: Mapping[str, str]
    now: float
    monotonic: Callable[[], float]
    until: float
    recent_tools: Sequence[str] = ()
    read_paths: Sequence[str] = ()
    team: TeamSettings = field(default_factory=TeamSettings)
    options: int = 0
    explain: bool = False
    authorship: Authorship = field(default_factory=Authorship)
    index: str = ""


class PromptRun(Struct, frozen=True):
    """A prompt being processed; ``until`` is its deadline in monotonic seconds."""

    project: Project
    settings: Settings
    prompt: Prompt
    session: str
    until: float

    def ranker_request(
        self,
        *,
        surfaced: Mapping[str, str],
        now: float,
        monotonic: Callable[[], float],
        authorship: Authorship,
        for_model: bool,
    ) -> RecallRequest:
        """Return the request to the local ranker, with its limits and deadline.

        ``surfaced`` are the memories that the session already got, as in ``RecallRequest``. With
        ``for_model`` the result also has the headers that a model chooses from.
        """
        seconds = min(_WAIT_SHARE * (self.until - monotonic()), _WAIT_SECONDS)
        return RecallRequest(
            directory=self.project.memory_dir,
            query=self.prompt.query,
            limit=select.most_memories(self.prompt.limit, self.settings),
            surfaced=surfaced,
            now=now,
            monotonic=monotonic,
            until=monotonic() + seconds,
            recent_tools=self.prompt.recent_tools,
            read_paths=self.prompt.read_paths,
            team=self.settings.team,
            options=limits.MANIFEST_ENTRIES if for_model else 0,
            explain=self.prompt.explain,
            authorship=authorship,
            index=self.prompt.index,
        )


class SurfacedCandidate(Struct, frozen=True):
    """A memory that may be sent, and its entry for the ledger."""

    memory: SurfacedMemory
    item: Item


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


class RecallSelection(Struct, frozen=True):
    """The ranker's selection of candidates (``offers``).

    ``empty`` says that there was no memory to choose from. ``left`` memories were not indexed yet;
    ``busy`` says that the index has background work. ``options`` are headers for a model.
    """

    offers: tuple[SurfacedCandidate, ...] = ()
    empty: bool = False
    left: int = 0
    count: int = 0
    busy: bool = False
    options: tuple[Header, ...] = ()
    rows: tuple[explain.Row, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def unfinished(self) -> str:
        """A sentence about memories that are not indexed yet, "" if all are."""
        if not self.left:
            return ""
        return f"{self.left:,} of {self.count:,} memories are not indexed yet"


def select_memories(indexes: Indexes, reader: Reader, request: RecallRequest) -> RecallSelection:
    """Return the memories that fit a prompt best, as candidates for it. Blocks.

    Raises Busy if the index is not free in time, and the errors of reading a directory.
    """
    with indexes.hold(request.directory, request.until - request.monotonic()):
        current = indexes.current(request.directory, _MEMORIES_AT_ONCE)
        not_indexed, notes = current.left, current.notes
        while not_indexed and request.monotonic() < request.until:
            current = indexes.advance(request.directory, _MEMORIES_AT_ONCE)
            not_indexed = current.left
            notes += tuple(note for note in current.notes if note not in notes)
        rules = _rules(reader, request)
        ranked_with_cut = current.index.rank(request.query, request.limit, rules.skips)
        options = _options_for_model(current.index, reader, request, rules, current.count)
    best = answered(ranked_with_cut)
    candidates = make_candidates(reader, request, [hit.path for hit in best])
    rows = _rows(reader, request, rules, ranked_with_cut) if request.explain else ()
    is_empty = not best and _all_are_excluded(reader, request, rules, current.count)
    return RecallSelection(
        candidates,
        empty=is_empty,
        left=not_indexed,
        count=current.count,
        busy=current.busy,
        options=options,
        rows=rows,
        notes=notes,
    )


def search(
    indexes: Indexes, reader: Reader, directory: str, query: str, most: int
) -> tuple[Hit, ...]:
    """Return the memories that contain a word of the query, the best first. Blocks.

    The index leaves out words as common as "who"; for a query of nothing else it is those that have
    the words as they are written, the newest first. Indexes all memories first. Raises the errors
    of ``select_memories``.
    """
    if not words(query):
        return tuple(islice(_literal_hits(reader, directory, query), most))
    with indexes.hold(directory):
        current = indexes.current(directory, limits.INDEX_AT_ONCE)
        while current.left:
            current = indexes.advance(directory, limits.INDEX_AT_ONCE)
        scored = answered(current.index.rank(query, most, floor=False))
    files = reader.read_many(directory, [hit.path for hit in scored])
    return _search_hits(scored, files)


def make_candidates(
    reader: Reader, request: RecallRequest, paths: Sequence[str]
) -> tuple[SurfacedCandidate, ...]:
    """Return the memories at these paths as candidates. Blocks.

    Left out are memories that cannot be read, and those that say no more than their line in the
    index that the session has.
    """
    directory = request.directory
    real_directory = os.path.realpath(directory)
    file_of = {file.header.path: file for file in reader.read_many(directory, paths)}
    result = []
    for path in paths:
        file = file_of.get(path)
        if file is None:
            continue
        text = (real_directory, path, file.hash)
        own, author = request.authorship.own(*text), request.authorship.author(*text)
        memory = select.surfaced_memory(directory, file, request.now, own=own, author=author)
        sent_memory = block.without_repetition(memory, _index_line(request.index, path))
        if sent_memory is not None:
            version = select.version_of(file.header)
            item = Item(memory.path, version, memory.bytes)
            result.append(SurfacedCandidate(sent_memory, item))
    return tuple(result)


def ledger_items(reader: Reader, directory: str, paths: Collection[str]) -> tuple[Item, ...]:
    """Return ledger entries, of 0 bytes, for memories that a session already has. Blocks."""
    result = []
    for file in reader.read_many(directory, sorted(paths)):
        path = select.absolute_path(directory, file.header.path)
        result.append(Item(path, select.version_of(file.header), 0))
    return tuple(result)


def _index_line(index: str, path: str) -> str:
    """Return the line of an index text that links to a memory, "" if there is none."""
    for line in index.splitlines():
        if f"]({path})" in line:
            return line
    return ""


def _rules(reader: Reader, request: RecallRequest) -> select.Rules:
    """Return the rules that say which memories a request may get."""
    directory = request.directory
    roots = (directory, os.path.realpath(directory)) if request.read_paths else ()
    return select.Rules(
        directory,
        {header.path: header for header in reader.headers(directory)}.get,
        surfaced=request.surfaced,
        read=select.relative_paths(request.read_paths, roots),
        tools=request.recent_tools,
        team=request.team.used(joined=request.authorship.joined(directory)),
    )


def _options_for_model(
    index: Index, reader: Reader, request: RecallRequest, rules: select.Rules, count: int
) -> tuple[Header, ...]:
    """Return the headers that a model chooses from: all, or the best ones of a large directory.

    ``count`` is the number of all memories.
    """
    if not request.options:
        return ()
    if count <= request.options:
        headers = reader.headers(request.directory)
        newest = sorted(headers, key=lambda header: (-header.mtime_ns, header.path))
        return tuple(header for header in newest if not rules.reason(header))
    best = answered(index.rank(request.query, request.options, rules.skips, floor=False))
    header_of = {each.path: each for each in reader.headers(request.directory)}
    return tuple(header_of[hit.path] for hit in best if hit.path in header_of)


def _all_are_excluded(
    reader: Reader, request: RecallRequest, rules: select.Rules, count: int
) -> bool:
    """Return whether the rules exclude all memories; not checked for a large directory."""
    if count > limits.MANIFEST_ENTRIES:
        return False
    headers = reader.headers(request.directory)
    return all(rules.reason(header) for header in headers)


def _rows(
    reader: Reader, request: RecallRequest, rules: select.Rules, ranked_with_cut: Sequence[Ranked]
) -> tuple[explain.Row, ...]:
    """Return the rows of an explanation: ranked memories and those that a rule excluded."""
    headers = {each.path: each for each in reader.headers(request.directory)}
    ranked = (
        explain.Row(
            path=hit.path,
            name=headers[hit.path].name if hit.path in headers else "",
            score=hit.score,
            parts=hit.parts,
            terms=hit.terms,
            kept=not hit.cut,
            reason=hit.cut,
        )
        for hit in ranked_with_cut
    )
    excluded = (explain.Row(path, name, reason=reason) for path, name, reason in rules.excluded())
    return (*ranked, *excluded)


def finished_rows(
    rows: Sequence[explain.Row],
    directory: str,
    surfaced: Sequence[SurfacedMemory],
    candidates: Sequence[SurfacedCandidate],
    *,
    by_model: bool,
) -> tuple[explain.Row, ...]:
    """Return the rows with the result: which memories are sent, and why others are not.

    ``by_model`` says that a model chose the ``candidates``.
    """
    names = {memory.path: memory.name for memory in surfaced}
    other_reason = explain.NOT_SELECTED if by_model else explain.UNREADABLE
    # Candidates beyond the block's size had no room; others were over the session's budget.
    _, fitting = block.render([candidate.memory for candidate in candidates])
    reasons = {each.memory.path: explain.SESSION_BUDGET for each in candidates[:fitting]}
    reasons |= {each.memory.path: explain.NO_ROOM for each in candidates[fitting:]}
    result = []
    for row in rows:
        path = select.absolute_path(directory, row.path)
        is_sent = names.pop(path, None) is not None
        reason = ""
        if not is_sent:
            reason = reasons.get(path) or row.reason or other_reason
        result.append(replace(row, kept=is_sent, reason=reason))
    # A model may choose memories without a word of the prompt, which have no row yet.
    for path, name in names.items():
        result.append(explain.Row(path.removeprefix(f"{directory}/"), name, kept=True))
    return tuple(result)


def rows_with_sightings(
    ledger: Ledger, directory: str, rows: Sequence[explain.Row]
) -> tuple[explain.Row, ...]:
    """Return each row with the time at which its memory was last surfaced. Blocks."""
    result = []
    for row in rows:
        sighting = ledger.last_surfaced(directory, row.path)
        at = None if sighting is None else iso_time(sighting.at)
        result.append(replace(row, last_surfaced=at))
    return tuple(result)


def _search_hits(scored: Sequence[Ranked], files: Sequence[MemoryFile]) -> tuple[Hit, ...]:
    """Return ranked memories as results of a search; those without a file are left out."""
    file_of = {file.header.path: file for file in files}
    result = []
    for ranked in scored:
        file = file_of.get(ranked.path)
        if file is not None:
            hit = Hit(
                path=ranked.path,
                name=file.header.name,
                description=file.header.description,
                score=ranked.score,
                snippet=select.snippet(file.body, ranked.terms),
                origin=file.header.origin,
            )
            result.append(hit)
    return tuple(result)


def _literal_hits(reader: Reader, directory: str, query: str) -> Iterator[Hit]:
    """Yield the memories that have each word of a query as it is written, the newest first."""
    searched = query.casefold().split()
    headers = reader.headers(directory) if searched else ()
    for start in range(0, len(headers), _MEMORIES_AT_ONCE):
        paths = [header.path for header in headers[start : start + _MEMORIES_AT_ONCE]]
        for file in reader.read_many(directory, paths):
            header = file.header
            lines = [header.path, header.name, header.description, *file.body.splitlines()]
            folded = "\n".join(lines).casefold()
            if all(word in folded for word in searched):
                line = next((one for one in lines if searched[0] in one.casefold()), "")
                shown = select.snippet_of_line(line)
                yield Hit(header.path, header.name, header.description, 0.0, shown, header.origin)
