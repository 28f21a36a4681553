"""The catalogue of one directory is what a fresh look at it finds, whatever happened."""

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memd.core.errors import MemdError
from memd.core.names import INDEX, clashes
from memd.files.directory import Directory
from memd.store import catalogue
from memd.store.live import Live
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
    watched.looks.tell(watched.real, None)


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
    "looked": lambda watched, _, __: watched.look(),
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
                wanted = sorted(copy.headers.values(), key=catalogue.order)
                assert list(glance.headers) == wanted
                files, _ = watched.reading.files(watched.real)
                assert watched.reading.count(watched.real) == len(files)
                for path in (*files, name.upper(), name.title()):
                    alone = clashes(path, files) is None
                    assert watched.reading.distinct(watched.real, {path}) == alone, act


def test_many_changes_are_sorted_anew(tmp_path: Path) -> None:
    """The order is right whether few or many memories changed since it was last asked for."""
    live = Live()
    for name in "abc":
        (tmp_path / f"{name}.md").write_bytes(topic(name))
    with Directory(str(tmp_path)) as opened:
        live.scan(opened, (), 0.0)
        first = live.listed()
        assert live.listed() is first
        for number in range(600):
            (tmp_path / f"{number}.md").write_bytes(topic(f"n{number}"))
        live.check(opened, [f"{number}.md" for number in range(300)], 0.0)
        assert len(live.listed()) == 303
        live.check(opened, [f"{number}.md" for number in range(300, 310)], 0.0)
        assert list(live.listed()) == sorted(live.headers.values(), key=catalogue.order)
        assert len(live.listed()) == 313


def test_what_cannot_be_read_is_told_and_still_a_file(tmp_path: Path) -> None:
    """A file that memd may not read is no header, a sentence, and not gone; so of the index."""
    live = Live()

    class Refusing(Directory):
        def read_head(self, name: str, limit: int) -> tuple[bytes, os.stat_result] | None:
            return super().read_head(f"{name[:0]}link.md", limit)

    (tmp_path / "link.md").symlink_to("x")
    with Refusing(str(tmp_path)) as opened:
        live.scan(opened, (), 0.0)
        (tmp_path / "a.md").touch()
        assert not live.check(opened, ["a.md", "b.md"], 0.0)
    assert not live.headers
    assert (live.files(), len(live.problems)) == (frozenset({"a.md"}), 1)
    assert not live.unclear
    with Directory(str(tmp_path)) as usual:
        assert live.check(usual, ["a.md"], 0.0)
        (tmp_path / INDEX).symlink_to("x")
        assert not live.index(usual)
    assert len(live.problems) == 1
