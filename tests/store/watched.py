"""A bench whose directory is read, looked at and changed under a watch."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memd.base.values import Draft, FileEdit, Header
from memd.files.directory import Directory
from memd.files.disk import real_disk
from memd.state.baseline import Baseline
from memd.store import catalogue
from memd.store.changes import ChangeRequest
from memd.store.commits import Commits
from memd.store.detection import Detection
from memd.store.headers_file import HeadersFiles
from memd.store.reading import DirectoryReader
from memd.store.replaced import Replaced
from memd.watch.external import Detected, ExternalEdits
from memd.watch.watch import Watch
from tests.store.bench import BY, Bench, open_bench
from tests.support.clock import FakeClock

LONG_AGO = 1e9  # a clock of that time takes every file for one that could be saved unseen
FAR_AHEAD = 2e10  # and this one none


class Watched:
    """The parts that keep a directory's catalogue live, put together as the service does."""

    def __init__(
        self, bench: Bench, at: float = FAR_AHEAD, files: HeadersFiles | None = None
    ) -> None:
        self.bench = bench
        self.path = bench.path
        self.real = bench.directory
        self.clock = FakeClock(at)
        self.news: list[tuple[str, str]] = []
        self.reading = DirectoryReader(self.clock, lambda *news: self.news.append(news), files)
        external = ExternalEdits(bench.journal, Baseline(bench.database))
        self.detection = Detection(external, self.reading)
        self.replaced = Replaced(real_disk())
        changes = bench.keeping(self.replaced).changes
        self.commits = Commits(bench.journal, changes, external, self.detection, self.replaced)
        self.watch = Watch(self.detection.note_change, lambda: None)
        self.detection.use_watch(self.watch)

    def close(self) -> None:
        """End the watch."""
        self.detection.use_watch(None)
        self.watch.close()
        self.replaced.close()

    def again(self) -> None:
        """Lose the watch and begin with another one."""
        self.watch.close()
        self.watch = Watch(self.detection.note_change, lambda: None)
        self.detection.use_watch(self.watch)

    def inspect(self, *, patient: bool = False) -> Detected:
        """Look at what others did."""
        return self.detection.detect(self.real, self.clock.now(), patient=patient)

    def write(self, path: str, content: bytes | None) -> None:
        """Write or delete one memory as the store does."""
        self.detection.detect(self.real, self.clock.now(), claim=True)
        draft = Draft((FileEdit(path, content),))
        self.commits.change(ChangeRequest(self.real, lambda _: draft, BY, self.clock.now()))

    def fresh(self) -> dict[str, Header]:
        """Return what a first look at the directory finds."""
        with Directory(self.real) as opened:
            return catalogue.scan(opened, {}).headers


@contextmanager
def open_watched(root: Path, at: float = FAR_AHEAD) -> Iterator[Watched]:
    """Open a watched bench that writes headers down."""
    with open_bench(root) as bench:
        opened = Watched(bench, at, HeadersFiles(str(root / "headers")))
        try:
            yield opened
        finally:
            opened.close()


class Copy:
    """A reader's copy of a catalogue, kept up by deltas alone."""

    def __init__(self, reading: DirectoryReader, directory: str) -> None:
        self._reading = reading
        self._directory = directory
        self._mark = -1
        self.headers: dict[str, Header] = {}
        self.wholes = 0

    def follow(self) -> dict[str, Header]:
        """Take over what changed; return the copy."""
        news = self._reading.catalogue(self._directory, self._mark)
        if news.whole:
            self.headers.clear()
            self.wholes += 1
        for path in news.gone:
            self.headers.pop(path, None)
        self.headers.update((header.path, header) for header in news.changed)
        self._mark = news.mark
        assert news.count == len(self.headers)
        return self.headers
