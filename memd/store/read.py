"""Reading memory directories: headers, the index, and single memories as they are now. Blocks.

The next reader sees what another program changed before. Directories may be given by any path that
leads to them; a missing one is empty.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress

from memd.base import limits
from memd.base.errors import MemdError, NotFound, Refused, Storage
from memd.base.names import INDEX, INDEXES, check_name, concerns
from memd.base.values import Header, MemoryFile, Snapshot
from memd.store.directory import Directory
from memd.store.log import ChangeRecord
from memd.store.sync import FileRow, Rows, headers_of
from memd.store.tree import LiveTree, read_memory

Noticed = Callable[[str, tuple[ChangeRecord, ...]], None]
_READ_SECONDS = 0.1  # that reading waits for a look or a change, so that the search is up to date


class MemoryReader:
    """Reads below any memory directory, in any thread; no reader waits for a writer.

    ``noticed`` is called, in the reading thread, with the path that the caller used and what others
    changed there.
    """

    def __init__(self, rows: Rows, noticed: Noticed = lambda *_: None) -> None:
        self._rows = rows
        self._noticed = noticed

    def rows(self, directory: str) -> Mapping[str, FileRow]:
        """Return the rows of a directory by path. Raises Refused and Storage."""
        return self._read(directory)[0]

    def headers(self, directory: str, real: str = "") -> tuple[Header, ...]:
        """Return the headers of all memories, newest first. Raises Refused and Storage.

        ``real`` is the real path of the directory, if the caller knows it.
        """
        return self._read(directory, real)[1]

    def known_headers(self, directory: str) -> list[Header]:
        """Return the headers of the last look, in any order; before the first look those of one.

        What memd wrote itself is in them. Raises Refused and Storage.
        """
        known = self._rows.of(os.path.realpath(directory)).rows
        rows = self.rows(directory) if known is None else known
        return [row.header for path, row in rows.items() if path not in INDEXES]

    def snapshot(self, directory: str) -> Snapshot:
        """Return headers, index and problems. Raises Refused and Storage."""
        _, headers, problems = self._read(directory)
        index = None
        try:
            with Directory(directory) as opened:
                result = opened.read(INDEX, limits.READ_BYTES)
                index = result[0] if result else None
        except NotFound:
            pass
        except MemdError as error:
            problems = (*problems, error.sentence)
        return Snapshot(directory, headers, index, problems)

    def read(self, directory: str, paths: Sequence[str], real: str = "") -> tuple[MemoryFile, ...]:
        """Return those of the memories that exist. Raises Refused, TooLarge and Storage.

        The log has each text of a memory that is returned, so that an edit of it can be merged.
        """
        files = []
        real = real or os.path.realpath(directory)
        # The files say themselves what they say now, so the directory need not be looked at.
        rows: Mapping[str, FileRow] = self._rows.of(real).rows or {}
        if not rows.keys() >= {*paths}.difference(INDEXES):
            rows = self.rows(directory)
        with ExitStack() as stack:
            try:
                opened = stack.enter_context(Directory(directory))
            except NotFound:
                return ()
            for path in paths:
                if path not in rows and path not in INDEXES:
                    # A person's own file may have any name, if it is one that a look meets.
                    check_name(path, index=True)
                file = read_memory(opened, path, rows.get(path))
                if file is not None:
                    files.append(file)
        saved = [
            file.header.path
            for file in files
            if concerns(file.header.path)
            and (file.header.path not in rows or rows[file.header.path].header.hash != file.hash)
        ]
        if saved:  # since the look, or while a change was being made
            known = self._rows.of(real)
            with suppress(MemdError), known.lock:
                scan = self._rows.sync(real, paths=saved)
                if scan.record:
                    self._noticed(directory, (scan.record,))
        return tuple(files)

    def read_many(
        self, directory: str, paths: Sequence[str], real: str = ""
    ) -> tuple[MemoryFile, ...]:
        """Return those of the memories that exist and can be read."""
        with suppress(MemdError):  # mostly all of them can, and then one opening is enough
            return self.read(directory, paths, real)
        files: list[MemoryFile] = []
        for path in paths:
            with suppress(MemdError):
                files += self.read(directory, (path,))
        return tuple(files)

    def texts(
        self, directory: str, paths: Sequence[str], most: int
    ) -> dict[str, tuple[bytes, int]]:
        """Return content and time of change (ns) of files of at most ``most`` bytes, by path.

        They need not be memories. Those that do not exist or cannot be read are left out.
        """
        result = {}
        with suppress(MemdError), Directory(directory) as opened:
            for path in paths:
                with suppress(MemdError):
                    if read := opened.read(path, most):
                        result[path] = read[0], read[1].st_mtime_ns
        return result

    def content(self, directory: str, path: str) -> bytes | None:
        """Return the bytes of a memory, or ``None``; raises what ``read`` does."""
        files = self.read(directory, (path,))
        return files[0].content if files else None

    @contextmanager
    def tree(self, directory: str) -> Iterator[LiveTree]:
        """Open a directory as a plan sees it, for reading only; writers do not wait for it.

        Raises Refused, NotFound and Storage.
        """
        rows = self.rows(directory)
        real = os.path.realpath(directory)
        unclear = "" in self._rows.of(real).problems
        with Directory(real) as opened:
            yield LiveTree(real, opened, rows, self._rows.log, unclear=unclear)

    def _read(
        self, directory: str, real: str = ""
    ) -> tuple[Mapping[str, FileRow], tuple[Header, ...], tuple[str, ...]]:
        """Return rows, headers (newest first) and the sentences of a directory as it is now.

        It waits no longer than 0.1 s for a change that is being made. Raises Refused and Storage
        where the directory cannot be opened.
        """
        if not directory.startswith("/"):
            raise Refused(f"the memory directory {directory} is no absolute path", path=directory)
        real = real or os.path.realpath(directory)
        known, scan = self._rows.of(real), None
        has_lock = known.lock.acquire(timeout=_READ_SECONDS)
        try:
            if has_lock:
                with suppress(Storage):  # the state file: what lies in the directory is still read
                    scan = self._rows.sync(real)
            if scan is None:
                scan = self._rows.scan(real, dict(known.rows or {}))
            rows, problems = scan.rows, known.problems
            if rows is not known.rows:
                headers = headers_of(rows)
            else:
                headers = known.headers = known.headers or headers_of(rows)
        finally:
            if has_lock:
                known.lock.release()
        if scan.record:
            self._noticed(directory, (scan.record,))
        sentences = (sentence for text in problems.values() for sentence in text.split("\n"))
        return rows, headers, tuple(sentences)
