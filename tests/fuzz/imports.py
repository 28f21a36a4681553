"""Sources of an import: archives of each form, and the files of each tool in them."""

import gzip
import io
import os
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from memd.base.errors import MemdError
from memd.base.names import INDEX, check_odd_name
from memd.portable import intake, kinds, memd_archive
from memd.portable.archive import OpenSource, open_source
from memd.portable.values import ImportReading, SourceKind
from memd.remote.link import RemoteAnswerError
from memd.team import wire
from tests.fuzz.target import Target, Use, plain, scratch
from tests.portable.archives import export_of
from tests.portable.sources import SAMPLES, tar_of
from tests.portable.trees import memory

_ENDINGS = {b"PK": "zip", b"\x1f\x8b": "tar.gz"}


@contextmanager
def archive() -> Iterator[Use]:
    """Open an archive: its names lead nowhere else, and what is read of it can be stored."""
    with scratch() as folder:
        staging = f"{folder}/staging"
        os.mkdir(staging)

        def use(content: bytes) -> None:
            path = folder / f"a.{_ENDINGS.get(content[:2], 'tar')}"
            path.write_bytes(content)
            with suppress(MemdError), open_source(str(path), staging) as source:
                _all_readers(source)
            path.unlink()
            assert os.listdir(folder) == ["staging"]
            assert os.listdir(staging) == []

        yield use


@contextmanager
def file_of_a_tool() -> Iterator[Use]:
    """Open one file of another tool, whose name stands in the first line of the input."""
    with scratch() as folder:

        def use(data: bytes) -> None:
            name, _, content = data.partition(b"\n")
            shown = os.fsdecode(name.rpartition(b"/")[2])
            if intake.reason_against_name(shown) or len(name) > 200:
                return
            root = folder / "source"
            root.mkdir()
            (root / shown).write_bytes(content)
            with suppress(MemdError), open_source(str(root), str(folder)) as source:
                _all_readers(source)
            (root / shown).unlink()
            root.rmdir()

        yield use


def _all_readers(source: OpenSource) -> None:
    for name in source.names():
        assert not intake.reason_against_name(name)
        with suppress(MemdError):
            assert len(source.read(name)) == source.size(name)
    with suppress(MemdError):
        kinds.kind_of(source)
    for kind in SourceKind:
        with suppress(MemdError):
            is_memd = kind is SourceKind.MEMD
            _check(memd_archive.read(source) if is_memd else kinds.read(kind, source))


def _check(reading: ImportReading) -> None:
    for project in reading.projects:
        for proposed in project.memories:
            if not proposed.path.endswith(INDEX):
                check_odd_name(proposed.path)
            assert isinstance(proposed.content, bytes)


def team_page(data: bytes) -> None:
    """Each answer of a team server is what was asked for or named as none."""
    for read in (
        lambda: wire.page("s", data),
        lambda: wire.page("s", data, hashes=True),
        lambda: wire.repositories("s", data),
        lambda: wire.joined("s", data),
        lambda: wire.accepted("s", data, ("a.md",)),
        lambda: wire.removed("s", data),
        lambda: wire.history("s", data, "a.md"),
    ):
        with suppress(RemoteAnswerError):
            read()
    wire.problem(data)


def _sample(path: str) -> bytes:
    """Return a file of the samples as an input: its name, and what is in it."""
    return f"{os.path.basename(path)}\n".encode() + (SAMPLES / path).read_bytes()[:3000]


def _packed(files: Iterable[tuple[str, bytes]]) -> tuple[bytes, bytes]:
    """Return files as tar.gz and as zip, the same bytes in every run."""
    members = list(files)
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content)
    return gzip.compress(tar_of(members, packed=False), mtime=0), result.getvalue()


def _samples() -> tuple[bytes, ...]:
    names = sorted(str(path.relative_to(SAMPLES)) for path in SAMPLES.rglob("*") if path.is_file())
    return tuple(map(_sample, names))


_EXPORT = list(export_of({"app": {"memory/a.md": memory("A fact.")}}).items())
_FILES = [("memory/a.md", memory("A fact.")), ("memory/MEMORY.md", b"- [a](a.md)\n"), ("d/", b"")]
_HASH = b"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
_ENTRY = b'{"key":"a.md","revision":1,"hash":"%b","member":"m","at":1,"content":"x"}' % _HASH
_PAGE = b'{"epoch":"e","revision":2,"entries":[%b],"removed":[%b],"next":"n"}'
_REMOVED = b'{"key":"b.md","revision":2,"at":1,"member":"m","reason":"r"}'
_PAGES = (
    _PAGE % (_ENTRY, _REMOVED),
    b'{"repos":[{"id":"r","remote":"x","role":"member","epoch":"e","revision":1}]}',
    b'{"token":"t","member":"m","revision":3,"entries":[{"key":"a.md","revision":3,"status":""}]}',
    b'{"versions":[{"key":"a.md","revision":1,"at":1,"member":"m"}]}',
    b'{"error":{"kind":"k","message":"w","limit":"l","max":1,"entries":[{"key":"a","revision":0}]}}',
)
TARGETS = {
    "archive": Target(
        archive,
        (*_packed(_EXPORT), *_packed(_FILES), tar_of(_FILES, packed=False)),
        (b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06", b"ustar", b"../", b"\x00" * 8),
        longest=16_384,
    ),
    "file of a tool": Target(
        file_of_a_tool,
        _samples(),
        (
            b"\n",
            b"- ",
            b"# ",
            b"---\n",
        ),
        longest=8192,
    ),
    "team page": Target(
        plain(team_page), _PAGES, (b'"key":', b'"hash":', _HASH, b'"next":', b"null"), json=True
    ),
}
