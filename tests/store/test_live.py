"""The catalogue of one directory is what a fresh look at it finds, whatever happened."""

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memd.base.errors import MemdError
from memd.base.names import INDEX
from memd.base.values import newest_first
from memd.files.directory import Directory
from memd.store.live import LOGGED_PATHS, LiveCatalogue
from tests.store.bench import topic
from tests.store.watched import LONG_AGO, Copy, Watched, open_watched

NAMES = ("a.md", "b.md", "über.md", "sub/a.md", "sub/deep/c.md", "other/a.md", INDEX, "logs/x.md")
Act = Callable[[Watched, Path, Path], object]


def _put(file: Path, content: bytes) -> None:
    if file.is_symlink():
        file.unlink()
    if not file.is_dir():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def _replace(watched: Watched, file: Path, _: Path) -> None:
    _put(watched.path / "new~", topic("replaced", file.name))
    if not file.is_dir():
        file.parent.mkdir(parents=True, exist_ok=True)
        os.replace(watched.path / "new~", file)


def _same_status(_watched: Watched, file: Path, _other: Path) -> None:
    if file.is_file():
        status = file.stat()
        file.write_bytes(file.read_bytes().swapcase())
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def _move(_: Watched, file: Path, other: Path) -> None:
    if file.is_file() and not other.is_dir():
        other.parent.mkdir(parents=True, exist_ok=True)
        file.rename(other)


def _move_folder(_: Watched, file: Path, other: Path) -> None:
    if file.parent.name != "memory" and file.parent.is_dir():
        target = other.parent if other.parent.name != "memory" else other.parent / "moved"
        if not target.exists() and file.parent not in target.parents:
            target.parent.mkdir(parents=True, exist_ok=True)
            file.parent.rename(target)


def _gone(_: Watched, file: Path, _other: Path) -> None:
    if file.is_file() or file.is_symlink():
        file.unlink()


def _link(_: Watched, file: Path, other: Path) -> None:
    if not os.path.lexists(file) and file.parent.is_dir():
        file.symlink_to(other)


def _lost(watched: Watched, _file: Path, _other: Path) -> None:
    watched.detection.note_change(watched.real, None)


def _tended(watched: Watched, _file: Path, _other: Path) -> None:
    watched.clock.advance(7200)
    watched.reading.tend()


def _memd(watched: Watched, file: Path, _: Path) -> None:
    path = str(file.relative_to(watched.path))
    if path in ("a.md", "b.md", "sub/a.md") and not file.is_dir():
        with suppress(MemdError):  # a link in its place is refused
            watched.write(
                path, None if file.is_file() and file.stat().st_size % 2 else topic("memd")
            )


ACTS: dict[str, Act] = {
    "saved": lambda _, file, other: _put(file, topic("saved", f"{other}")),
    "emptied": lambda _, file, __: _put(file, b""),
    "replaced": _replace,
    "same status": _same_status,
    "moved": _move,
    "folder moved": _move_folder,
    "gone": _gone,
    "folder gone": lambda _, file, __: shutil.rmtree(file.parents[0] / "sub", ignore_errors=True),
    "linked": _link,
    "hidden": lambda _, file, other: _move(_, file, other.with_name(".hidden.md")),
    "all gone": lambda watched, _, __: shutil.rmtree(watched.path),
    "events lost": _lost,
    "watch lost": lambda watched, _, __: watched.again(),
    "looked": lambda watched, _, __: watched.inspect(),
    "tended": _tended,
    "by memd": _memd,
}
steps = st.tuples(
    st.sampled_from(sorted(ACTS)), st.sampled_from(NAMES), st.sampled_from(NAMES), st.booleans()
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(steps, max_size=10))
@example(
    [
        ("saved", "sub/deep/c.md", "a.md", True),
        ("folder moved", "sub/a.md", "other/a.md", True),
        ("saved", "other/deep/c.md", "a.md", True),
        ("same status", "other/deep/c.md", "a.md", True),
    ]
)
@example(
    [
        ("saved", "a.md", "a.md", True),
        ("same status", "a.md", "a.md", True),
        ("by memd", "a.md", "a.md", True),
        ("all gone", "a.md", "a.md", True),
        ("by memd", "b.md", "a.md", True),
    ]
)
def test_deltas_lead_to_what_is_there(story: list[tuple[str, str, str, bool]]) -> None:
    """After any work of anybody, a copy that follows the deltas equals a fresh scan."""
    with tempfile.TemporaryDirectory() as root, open_watched(Path(root), LONG_AGO) as watched:
        copy = Copy(watched.reading, watched.real)
        copy.follow()
        for act, name, other, ask in story:
            watched.path.mkdir(exist_ok=True)
            ACTS[act](watched, watched.path / name, watched.path / other)
            if ask:
                there = watched.path.is_dir()
                assert copy.follow() == (watched.fresh() if there else {}), act
                glance = watched.reading.snapshot(watched.real).snapshot
                index = watched.path / INDEX
                assert glance.index == (index.read_bytes() if index.is_file() else None)
                wanted = sorted(copy.headers.values(), key=newest_first)
                assert list(glance.headers) == wanted
                assert watched.reading.files(watched.real)[0] >= copy.headers.keys()


def test_a_foreign_mark_is_not_known() -> None:
    """Neither no mark, nor one of an earlier or later catalogue, is taken for one of this one."""
    older, live = LiveCatalogue(), LiveCatalogue()
    older._log_changes(["x"])
    newer = LiveCatalogue()
    for foreign in (-1, 0, mark_of(older), mark_of(newer)):
        assert live.since("/d", foreign).whole
    assert not live.since("/d", mark_of(live)).whole


ROUNDS = st.tuples(
    st.sets(st.integers(0, 2 * LOGGED_PATHS), max_size=4),
    st.sampled_from([0, LOGGED_PATHS - 1, LOGGED_PATHS, LOGGED_PATHS + 1]),
)


@given(st.lists(ROUNDS, max_size=12))
def test_a_full_log_forgets_and_says_so(rounds: list[tuple[set[int], int]]) -> None:
    """However much changes, a mark gives every path that changed since, or none is left out."""
    live = LiveCatalogue()
    given_out: list[tuple[int, set[str]]] = []
    for few, many in rounds:
        paths = {f"{number}.md" for number in (*few, *range(many))}
        given_out.append((mark_of(live), set()))
        assert live._log_changes(sorted(paths)) == bool(paths)
        for _, missed in given_out:
            missed.update(paths)
    for mark, missed in given_out:
        results = live.since("/d", mark)
        assert results.whole or set(results.gone) == missed
    assert live.since("/d", mark_of(live)).gone == ()


def mark_of(live: LiveCatalogue) -> int:
    """Return the mark that a reader is given now."""
    return live.since("/d", -1).mark


def test_what_cannot_be_read_is_told_and_still_a_file(tmp_path: Path) -> None:
    """A file that memd may not read is no header, a sentence, and not gone; so of the index."""
    live = LiveCatalogue()

    class Refusing(Directory):
        def read_head(self, name: str, limit: int) -> tuple[bytes, os.stat_result] | None:
            return super().read_head(f"{name[:0]}link.md", limit)

    (tmp_path / "link.md").symlink_to("x")
    with Refusing(str(tmp_path)) as opened:
        live.scan(opened, (), 0.0)
        (tmp_path / "a.md").touch()
        assert not live.check(opened, ["a.md", "b.md"], 0.0)
    assert not live.headers
    assert (live.files(), len(live.problems)) == ((frozenset({"a.md"}), False), 1)
    with Directory(str(tmp_path)) as usual:
        assert live.check(usual, ["a.md"], 0.0)
        (tmp_path / INDEX).symlink_to("x")
        assert not live.read_index(usual)
    assert len(live.problems) == 1
