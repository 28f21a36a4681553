"""Archives that were made to harm: an error or a refusal each, nothing elsewhere, little memory."""

import gzip
import io
import json
import os
import struct
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memd.base.errors import MemdError
from memd.client.blocking import Client
from tests.portable.archives import export_of
from tests.portable.sources import tar_of, zip_of
from tests.portable.test_memd_archive import WHOLE
from tests.portable.trees import memory
from tests.soak.figures import FIGURE
from tests.support.daemon import Home, client, daemon_process, throw_away_home

MEBIBYTE = 1024 * 1024
MOST = 150 * MEBIBYTE  # of the whole daemon
SECRET = b"the token is ghp" + b"_16C7e42F292c6912E7710c838347Ae178B4a\n"
ZEROS = bytes(MEBIBYTE)


def million_in_a_zip(path: Path, entries: int = 1_000_000) -> None:
    """Write a zip whose directory has very many entries."""
    raw = zip_of([("d/", b"")])
    at, end = raw.index(b"PK\1\2"), raw.index(b"PK\5\6")
    body, last = raw[at:end] * entries, bytearray(raw[end:])
    wide = (44, 45, 45, 0, 0, entries, entries, len(body), at)
    record = struct.pack("<4sQ2H2L4Q", b"PK\6\6", *wide)
    place = struct.pack("<4sLQL", b"PK\6\7", 0, at + len(body), 1)
    last[8:20] = b"\xff" * 12
    path.write_bytes(raw[:at] + body + record + place + bytes(last))


def million_in_a_tar(path: Path, entries: int = 1_000_000) -> None:
    """Write a tar.gz of very many small files, packed so that its ratio is harmless."""
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for number in range(entries):
            info = tarfile.TarInfo(f"{number}-{os.urandom(6).hex()}.md")
            archive.addfile(info)


def zeros(path: Path, size: int = 1023 * MEBIBYTE) -> None:
    """Write a tar.gz of one file of zeros."""
    info = tarfile.TarInfo("a.md")
    info.size = size
    with gzip.open(path, "wb", 1) as file:
        file.write(info.tobuf())
        for _ in range(size // MEBIBYTE):
            file.write(ZEROS)
        file.write(bytes(1024))


def header_of_a_gibibyte(path: Path) -> None:
    """Write a tar whose first header announces a name of a gibibyte."""
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 1024**3
    path.write_bytes(info.tobuf() + bytes(MEBIBYTE))


def manifest_of_100_000(path: Path, files: int = 99_000) -> None:
    """Write an export of very many files that are no memories."""
    export = export_of({"app": {f"junk/m{n}.bin": b"x" for n in range(files)}})
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name, content in export.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def deep_json(path: Path) -> None:
    """Write lists in lists in lists."""
    path.write_bytes(b'{"results": ' + b"[" * 30_000_000)


def nested(path: Path) -> None:
    """Write an archive in an archive in an archive."""
    content = zip_of([("a.md", ZEROS)])
    for _ in range(20):
        content = zip_of([("inner.zip", content)])
    path.write_bytes(content)


def many_memories(path: Path) -> None:
    """Write an export of ten thousand memories, which is as much as one import brings."""
    more = ((n, os.urandom(150).hex()) for n in range(10_000))
    files = {f"memory/m{n}.md": memory(f"Host {n} has the sum {text}.") for n, text in more}
    path.write_bytes(tar_of(list(export_of({"app": files}).items())))


def long_headers(path: Path) -> None:
    """Write a tar of attributes in which numbers of holes never end."""
    holes = b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, len(holes)
    file = tarfile.TarInfo("a.md")
    file.size = 24 * MEBIBYTE
    content = b"9999999\n" + b"0\n" * (file.size // 2 - 4)
    path.write_bytes(header.tobuf() + holes.ljust(512, b"\0") + file.tobuf() + content)


def leading_out(path: Path) -> None:
    """Write names that lead elsewhere."""
    path.write_bytes(tar_of([("ok.md", b"ok"), ("../../escaped.md", b"bad")]))


def links(path: Path) -> None:
    """Write a link to a file that is there, and a memory that is to be written through it."""
    link = tarfile.TarInfo("memory")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc"
    device = tarfile.TarInfo("null.md")
    device.type, device.devmajor, device.devminor = tarfile.CHRTYPE, 1, 3
    rule = memory("A fact that is harmless.")
    path.write_bytes(tar_of([link, device, ("MEMORY.md", b""), ("a.md", rule)]))


def secrets(path: Path) -> None:
    """Write memories that hold a credential, in a text, a name and the index."""
    files = {
        "memory/a.md": memory("x") + SECRET,
        "memory/MEMORY.md": SECRET,
        "memory/ok.md": memory("A fact that is harmless."),
    }
    path.write_bytes(tar_of(list(export_of({"app": files}).items())))


def newer(path: Path) -> None:
    """Write an archive of version 2."""
    path.write_bytes(tar_of(list(export_of({"app": {}}, version=2).items())))


def wrong_sums(path: Path) -> None:
    """Write an archive of which one byte is another."""
    path.write_bytes(tar_of(list((WHOLE | {"projects/app/memory/a.md": b"x"}).items())))


def clashing(path: Path) -> None:
    """Write names that differ in case alone."""
    path.write_bytes(zip_of([("a.md", b"1"), ("A.md", b"2")]))


# What makes each archive, with words of its error, or how many files of it come.
Make = Callable[[Path], None]
QUICK: dict[str, tuple[Make, str | int]] = {
    "out.tar.gz": (leading_out, "leads elsewhere"),
    "links.tar.gz": (links, 2),
    "secrets.tar.gz": (secrets, 1),
    "newer.tar.gz": (newer, "version 2"),
    "sums.tar.gz": (wrong_sums, "a.md"),
    "clash.zip": (clashing, "case alone"),
    "header.tar": (header_of_a_gibibyte, "too large"),
    "holes.tar": (long_headers, "too large"),
    "nested.zip": (nested, "inner.zip"),
    "zeros.tar.gz": (lambda path: zeros(path, 40 * MEBIBYTE), "200 times"),
    "million.zip": (lambda path: million_in_a_zip(path, 100_001), "100,000 entries"),
    "deep.json": (deep_json, "nobody knows"),
}
LARGE: dict[str, tuple[Make, str | int]] = {
    "zeros.tar.gz": (zeros, "200 times"),
    "million.zip": (million_in_a_zip, "100,000 entries"),
    "million.tar.gz": (million_in_a_tar, "100,000 entries"),
    "manifest.tar.gz": (manifest_of_100_000, 0),
    "many.tar.gz": (many_memories, 10_000),
}


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    """Make a home."""
    with throw_away_home() as made:
        yield made


def outside(home: Home) -> dict[str, int]:
    """Return what lies in a home that is not memd's own, with its sizes."""
    own = (home.places.state_dir, f"{home.path}/.claude", f"{home.path}/archives")
    files = (path for path in Path(home.path).rglob("*") if path.is_file())
    return {str(path): path.stat().st_size for path in files if not str(path).startswith(own)}


def peak(pid: int) -> int:
    """Return the most memory that a process has had, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def brought(caller: Client, params: dict[str, object]) -> int | str:
    """Import an archive; return how many files came, or the words of the error."""
    try:
        answer = caller.call("import", params, timeout=600)
    except MemdError as error:
        return str(error)
    return sum(int(len(each["files"]) + each["files_more"]) for each in answer["projects"])


def play(home: Home, cases: dict[str, tuple[Make, str | int]], record: Callable[..., None]) -> None:
    """Import each archive with accept into a project of its own, and look at what came of it."""
    folder = Path(home.path, "archives")
    folder.mkdir(exist_ok=True)
    for name, (make, _) in cases.items():
        make(folder / name)
    with daemon_process(home) as process, client(home) as caller:
        before = outside(home)
        for name, (_, expected) in cases.items():
            cwd = home.project(name.replace(".", "-"))
            before = before | outside(home) if name == next(iter(cases)) else before
            outcome = brought(caller, {"cwd": cwd, "source": str(folder / name), "accept": True})
            if isinstance(expected, str):
                assert expected in str(outcome), (name, outcome)
            else:
                assert outcome == expected, name
            assert SECRET.decode() not in json.dumps(caller.call("memory.list", {"cwd": cwd}))
            reached = peak(process.pid)
            record(FIGURE, f"hostile archives: {name}: at most {reached / MEBIBYTE:.0f} MiB")
            assert reached < MOST, name
            os.unlink(folder / name)
        staged = [name for name in os.listdir(home.places.state_dir) if "tmp" in name]
        assert (staged, outside(home)) == ([], before)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_hostile_archives_harm_nothing(home: Home, record_property: Callable[..., None]) -> None:
    """Of each the error or the refusal is clear, and the daemon stays small: the quick ones."""
    play(home, QUICK, record_property)


@pytest.mark.soak
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_large_hostile_archives_harm_nothing(
    home: Home, record_property: Callable[..., None]
) -> None:
    """The same of a million entries, a gibibyte of zeros, and as much as one import brings."""
    play(home, LARGE, record_property)
