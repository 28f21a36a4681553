"""Every state in which a power cut may leave the disk, from the system calls of one operation.

The model assumes the least that a journaling file system gives, and no order at all:

- what was written to a file is there for certain only after an fsync of that file; before it each
  write may be there or not, and the last may be there in part, or as zeros;
- a name in a folder (made, removed, renamed, exchanged; each atomic) is there for certain only
  after an fsync of that folder; before it each change of names may be there or not;
- of SQLite's log, whose frames are chained by checksums, any beginning may be there.

``trace`` reads the log of strace, ``cuts`` enumerates, ``Image.write`` puts one state on the disk.
"""

import os
import random
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

NAMING = (*("openat", "renameat2", "rename", "renameat", "unlink", "unlinkat", "mkdir", "mkdirat"),)
TRACED = (
    *NAMING,
    *("write", "pwrite64", "ftruncate", "fsync", "fdatasync", "writev", "utimensat"),
)
ARGUMENTS = ("-y", "-xx", "-s", "1000000", "-e", f"trace={','.join(TRACED)}")
WAL, SHM = "state.db-wal", "state.db-shm"
EXHAUSTIVE = 8  # pending changes of which every subset is tried: 2^8 states at one instant
SAMPLED = 60
_LINE = re.compile(r"^(?:\d+ +)?(\w+)\((.*)\) += (\d+)")
_HEX = re.compile(r"(?:\\x[0-9a-f]{2})*")
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_FD = re.compile(r"(AT_FDCWD|\d+)<((?:\\x[0-9a-f]{2})*)>")


@dataclass
class Node:
    """A file or a folder as the medium may know it."""

    folder: bool = False
    data: bytes = b""
    mtime_ns: int | None = None


@dataclass(frozen=True)
class Change:
    """A change that is not on the medium yet: bytes of a file, or names of a folder."""

    node: int
    at: int = 0
    data: bytes | None = None
    size: int | None = None
    names: tuple[tuple[str, int | None], ...] = ()


@dataclass
class Image:
    """A whole disk: nodes by number, and what each folder's names mean."""

    nodes: dict[int, Node] = field(default_factory=dict)
    names: dict[int, dict[str, int]] = field(default_factory=dict)

    def copy(self) -> "Image":
        """Return an image that may be changed by itself."""
        nodes = {n: Node(o.folder, o.data, o.mtime_ns) for n, o in self.nodes.items()}
        return Image(nodes, {n: dict(names) for n, names in self.names.items()})

    def apply(self, change: Change) -> None:
        """Make one change."""
        if change.names:
            folder = self.names.setdefault(change.node, {})
            for name, number in change.names:
                folder.pop(name, None)
                if number is not None:
                    folder[name] = number
            return
        node = self.nodes[change.node]
        if change.size is not None:
            node.data = node.data[: change.size].ljust(change.size, b"\0")
        elif change.data is not None:
            old = node.data.ljust(change.at, b"\0")
            node.data = old[: change.at] + change.data + old[change.at + len(change.data) :]

    def files(self, folder: int = 0, prefix: str = "") -> dict[str, Node]:
        """Return what can be reached from the top, by path."""
        results: dict[str, Node] = {}
        for name, number in sorted(self.names.get(folder, {}).items()):
            node = self.nodes[number]
            results[prefix + name] = node
            if node.folder:
                results |= self.files(number, f"{prefix}{name}/")
        return results

    def key(self) -> tuple[tuple[str, bytes], ...]:
        """Return what tells two states apart."""
        return tuple((p, b"/" if n.folder else n.data) for p, n in self.files().items())

    def write(self, root: Path) -> None:
        """Put the state on the real disk; SQLite's shared memory does not survive a cut."""
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        for path, node in self.files().items():
            if node.folder:
                (root / path).mkdir()
                continue
            if path == SHM:
                continue
            (root / path).write_bytes(node.data)
            os.chmod(root / path, 0o600)
            if node.mtime_ns is not None:
                os.utime(root / path, ns=(node.mtime_ns, node.mtime_ns))


class Disk:
    """A disk that remembers what is on the medium and what is still on its way."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.stable = Image({0: Node(folder=True)}, {0: {}})
        self.pending: list[Change] = []
        self.acknowledged = False
        self._load(root, 0)
        self.now = self.stable.copy()

    def _load(self, folder: Path, number: int) -> None:
        for path in sorted(folder.iterdir()):
            own = len(self.stable.nodes)
            self.stable.names[number][path.name] = own
            if path.is_dir():
                self.stable.nodes[own] = Node(folder=True)
                self.stable.names[own] = {}
                self._load(path, own)
            else:
                node = Node(data=path.read_bytes(), mtime_ns=path.stat().st_mtime_ns)
                self.stable.nodes[own] = node

    def find(self, path: str) -> int | None:
        """Return the node that a path means now."""
        number: int | None = 0
        for part in path.split("/") if path else ():
            number = self.now.names.get(number or 0, {}).get(part)
            if number is None:
                return None
        return number

    def change(self, change: Change) -> None:
        """Make a change that is not on the medium."""
        self.now.apply(change)
        self.pending.append(change)

    def rename(self, path: str, **names: int | None) -> None:
        """Change names of the folder that a path lies in."""
        folder = self.find(path.rpartition("/")[0])
        assert folder is not None
        self.change(Change(folder, names=tuple(names.items())))

    def make(self, path: str, *, folder: bool = False) -> None:
        """Make a file or a folder."""
        number = len(self.now.nodes)
        for image in (self.now, self.stable):
            image.nodes[number] = Node(folder=folder)
            if folder:
                image.names[number] = {}
        self.rename(path, **{_last(path): number})

    def sync(self, path: str) -> None:
        """Bring a file or the names of a folder to the medium."""
        number = self.find(path)
        for change in [c for c in self.pending if c.node == number]:
            self.stable.apply(change)
        self.pending = [c for c in self.pending if c.node != number]

    def cuts(self) -> Iterator[Image]:
        """Yield every state that a cut at this instant may leave, or many of them."""
        log = self.find(WAL)
        rest = [c for c in self.pending if log is None or c.node != log]
        frames = [c for c in self.pending if log is not None and c.node == log]
        for kept in _subsets(len(rest)):
            image = self.stable.copy()
            for number in kept:
                image.apply(rest[number])
            for length in range(len(frames) + 1):
                state = image.copy()
                for frame in frames[:length]:
                    state.apply(frame)
                yield state
            yield from _torn(image, rest, kept)


def _torn(image: Image, rest: list[Change], kept: tuple[int, ...]) -> Iterator[Image]:
    """Yield the states in which the newest write to a file is there in part or as zeros."""
    writes = [n for n in range(len(rest)) if rest[n].data]
    if writes and writes[-1] not in kept:
        last = rest[writes[-1]]
        assert last.data is not None
        for data in (last.data[: len(last.data) // 2], bytes(len(last.data))):
            state = image.copy()
            state.apply(Change(last.node, last.at, data))
            yield state


def _subsets(size: int) -> Iterator[tuple[int, ...]]:
    if size <= EXHAUSTIVE:
        for length in range(size + 1):
            yield from combinations(range(size), length)
        return
    every = range(size)
    yield from (tuple(every[:length]) for length in range(size + 1))
    for missing in every:
        yield tuple(n for n in every if n != missing)
        yield (missing,)
    dice = random.Random(size)  # noqa: S311 - the same sample in every run
    for _ in range(SAMPLED):
        yield tuple(n for n in every if dice.random() < 0.5)


def replay(log: str, root: Path) -> Iterator[Disk]:
    """Yield the disk before the first call of a log and after each that changes something."""
    disk = Disk(root)
    yield disk
    for line in log.splitlines():
        match = _LINE.match(line)
        if match and _step(disk, match[1], match[2], int(match[3])):
            yield disk


def _step(disk: Disk, call: str, rest: str, result: int) -> bool:
    paths = _paths(disk.root, rest, named=call in NAMING)
    if call in {"write", "writev"} and rest.startswith("1<"):
        disk.acknowledged = disk.acknowledged or _bytes(rest)[:12] == b"acknowledged"
        return True
    if not paths or paths[0] == SHM:
        return False
    path = paths[0]
    known = disk.find(path)
    if call == "openat":
        if "O_CREAT" not in rest or known is not None:
            return False
        disk.make(path)
    elif call in {"mkdir", "mkdirat"}:
        disk.make(path, folder=True)
    elif call in {"unlink", "unlinkat"}:
        disk.rename(path, **{_last(path): None})
    elif call in {"rename", "renameat", "renameat2"}:
        other = disk.find(paths[1]) if "RENAME_EXCHANGE" in rest else None
        assert path.rpartition("/")[0] == paths[1].rpartition("/")[0]
        disk.rename(path, **{_last(path): other, _last(paths[1]): known})
    elif known is not None:
        if call in {"fsync", "fdatasync"}:
            disk.sync(path)
        else:
            _bytes_step(disk, call, rest, result, known)
    return True


def _bytes_step(disk: Disk, call: str, rest: str, result: int, node: int) -> None:
    if call == "ftruncate":
        disk.change(Change(node, size=int(rest.rpartition(", ")[2])))
    elif call == "utimensat":
        results = re.findall(r"tv_sec=(\d+), tv_nsec=(\d+)", rest)[-1]
        time = int(results[0]) * 10**9 + int(results[1])
        for image in (disk.now, disk.stable):  # with the first fsync, before the name is there
            image.nodes[node].mtime_ns = time
    elif call == "pwrite64":
        disk.change(Change(node, int(rest.rpartition(", ")[2]), _bytes(rest)[:result]))
    else:
        at = len(disk.now.nodes[node].data)  # memd writes its files from the beginning on
        disk.change(Change(node, at, _bytes(rest)[:result]))


def _paths(root: Path, rest: str, *, named: bool) -> list[str]:
    """Return the paths below the root that a call names, or whose descriptor it has."""
    results: list[str] = []
    folders = [_text(match[2]) for match in _FD.finditer(rest)]
    strings = [_text(text) for text in _STRING.findall(rest)] if named else []
    if strings:
        full = [os.path.join(f, s) for f, s in zip(folders or [""] * 2, strings, strict=False)]
        if not folders:
            full = strings
    else:
        full = folders[:1]
    for path in full:
        if path == str(root):
            results.append("")
        elif path.startswith(f"{root}/"):
            results.append(path.removeprefix(f"{root}/"))
    return results


def _bytes(rest: str) -> bytes:
    results = _STRING.search(rest)
    return bytes.fromhex(results[1].replace("\\x", "")) if results else b""


def _text(hexed: str) -> str:
    return bytes.fromhex(hexed.replace("\\x", "")).decode()


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def distinct(states: Iterator[Disk]) -> Iterator[tuple[Image, bool]]:
    """Yield each reachable state once, with whether the change was acknowledged by then."""
    seen: set[object] = set()
    for disk in states:
        for image in disk.cuts():
            key = (image.key(), disk.acknowledged)
            if key not in seen:
                seen.add(key)
                yield image, disk.acknowledged
