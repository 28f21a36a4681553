"""Folders, archives and single files as sources: what comes in, and what does not."""

import os
import resource
import struct
import tarfile
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base.errors import Invalid, NotFound, Storage
from memd.portable.archive import open_source
from memd.portable.intake import ENTRIES, Intake, reason_against_name
from tests.portable.sources import tar_of, written, zip_of

FILES = {
    "MEMORY.md": b"- [A](a.md)\n",
    "a.md": b"",
    "deep/er/b c.md": b"text\n" * 40_000,
    "n\xfc.md": b"\xff",
}
Make = Callable[[list[tuple[str, bytes]]], bytes]


def _tar(*, packed: bool = True, form: int = tarfile.PAX_FORMAT) -> bytes:
    return tar_of(list(FILES.items()), packed=packed, form=form)


def _zip() -> bytes:
    return zip_of(list(FILES.items()))


def _source(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "source"
    path.write_bytes(content)
    return str(path)


def _taken(path: str, staging: Path) -> dict[str, bytes]:
    with open_source(path, str(staging)) as source:
        return {name: source.read(name) for name in source.names()}


def _refused(path: str, staging: Path) -> str:
    with pytest.raises(Invalid) as caught, open_source(path, str(staging)):
        pass
    assert list(staging.iterdir()) == [staging / "source"]
    return caught.value.sentence


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(_tar(), id="tar.gz"),
        pytest.param(_tar(packed=False), id="tar"),
        pytest.param(_tar(form=tarfile.GNU_FORMAT), id="gnu"),
        pytest.param(_tar(form=tarfile.USTAR_FORMAT), id="ustar"),
        pytest.param(_zip(), id="zip"),
    ],
)
def test_an_archive_has_the_files_that_were_put_in(tmp_path: Path, content: bytes) -> None:
    """Each form of archive gives back names, bytes, sizes and times, and leaves nothing behind."""
    with open_source(_source(tmp_path, content), str(tmp_path)) as source:
        assert {name: source.read(name) for name in source.names()} == FILES
        assert all(source.size(name) == len(FILES[name]) for name in FILES)
        assert source.left_out.files == []
        if content[:2] != b"PK":
            assert source.mtime_ns("a.md") == 1_700_000_000 * 10**9
    assert list(tmp_path.iterdir()) == [tmp_path / "source"]


def test_a_folder_has_its_files_and_no_others(tmp_path: Path) -> None:
    """Links, FIFOs and folders of version control are passed over; a link to the folder is not."""
    folder = written(
        tmp_path / "folder", {**FILES, ".git/config": b"x", ".claude/rules/r.md": b"r"}
    )
    (folder / "link.md").symlink_to(tmp_path / "secret")
    (tmp_path / "secret").write_text("s")
    os.mkfifo(folder / "pipe.md")
    (tmp_path / "way").symlink_to(folder)
    os.utime(folder / "a.md", ns=(5, 1_234_567_890_123))
    with open_source(str(tmp_path / "way"), str(tmp_path)) as source:
        assert {name: source.read(name) for name in source.names()} == {
            **FILES,
            ".claude/rules/r.md": b"r",
        }
        assert source.mtime_ns("a.md") == 1_234_567_890_123
        assert sorted((each.name, each.reason) for each in source.left_out.files) == [
            ("link.md", "it is a link"),
            ("pipe.md", "it is no regular file"),
        ]


def test_a_file_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    """What stands at a name once it is read must be what was listed there."""
    folder = written(tmp_path / "folder", {"a.md": b"text"})
    (tmp_path / "secret").write_text("text")
    with open_source(str(folder), str(tmp_path)) as source:
        (folder / "a.md").unlink()
        (folder / "a.md").symlink_to(tmp_path / "secret")
        with pytest.raises(Invalid, match="link"):
            source.read("a.md")


def test_one_file_is_a_source(tmp_path: Path) -> None:
    """A file that is no archive is the only one of its source, and is noticed when it changes."""
    path = tmp_path / "memories.json"
    path.write_text("{}")
    with open_source(str(path), str(tmp_path)) as source:
        assert (source.names(), source.size("memories.json")) == (("memories.json",), 2)
        assert source.read("memories.json") == b"{}"
        path.write_text("")
        with pytest.raises(Invalid, match="changed"):
            source.read("memories.json")


def test_what_is_not_there_or_no_file_is_refused(tmp_path: Path) -> None:
    """A missing file, a FIFO, a device, a relative path and a NUL are refused, and none waits."""
    os.mkfifo(tmp_path / "pipe")
    for path in ("none", "pipe", "/dev/zero", "a\0b", "\udcff"):
        with (
            pytest.raises(NotFound),
            open_source(os.path.join(tmp_path, path), str(tmp_path)),
        ):
            pass
    with pytest.raises(NotFound), open_source("relative", str(tmp_path)):
        pass


def _special(kind: bytes, name: str = "x.md", target: str = "/etc/passwd") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize(
    "kind",
    [
        tarfile.LNKTYPE,
        tarfile.SYMTYPE,
        tarfile.CHRTYPE,
        tarfile.BLKTYPE,
        tarfile.FIFOTYPE,
        b"S",
        b"D",
    ],
)
def test_what_is_no_file_in_a_tar_is_passed_over(tmp_path: Path, kind: bytes) -> None:
    """Links, devices, FIFOs, sparse files and unknown kinds are listed, and the rest is read."""
    path = _source(tmp_path, tar_of([_special(kind), ("a.md", b"a")]))
    with open_source(path, str(tmp_path)) as source:
        assert (source.names(), source.read("a.md")) == (("a.md",), b"a")
        assert [each.name for each in source.left_out.files] == ["x.md"]


def test_an_export_may_lie_in_a_folder_of_its_archive(tmp_path: Path) -> None:
    """The one folder that an export was packed with is not part of its names."""
    inside = [("top/manifest.json", b"{}"), ("top/projects/a/memory/a.md", b"a")]
    with open_source(_source(tmp_path, tar_of(inside)), str(tmp_path)) as source:
        assert source.names() == ("manifest.json", "projects/a/memory/a.md")
        assert source.read("projects/a/memory/a.md") == b"a"


NAMES = [
    "../x.md",
    "/x.md",
    "a/../../x.md",
    "a//x.md",
    "a/./x.md",
    "..",
    "x\0.md",
    "a\\..\\x.md",
    "d/" * 16 + "x.md",
    "n" * 1025,
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["tar", "zip"])
def test_a_name_that_leads_elsewhere_refuses_the_archive(
    tmp_path: Path, name: str, form: str
) -> None:
    """Absolute names, names with ``..``, empty parts, a NUL, too deep or long take nothing."""
    if "\0" in name:  # which the libraries that write archives would cut there
        assert reason_against_name(name)
        return
    members = [("ok.md", b"ok"), (name, b"bad")]
    content = tar_of([*members]) if form == "tar" else zip_of([*members])
    assert "nothing was taken" in _refused(_source(tmp_path, content), tmp_path)


@pytest.mark.parametrize("make", [tar_of, zip_of])
@pytest.mark.parametrize(
    "names",
    [
        ("a.md", "a.md"),
        ("a.md", "a.md/b.md"),
        ("a.md/b.md", "a.md"),
        ("a.md", "./a.md"),
        ("a.md", "A.MD"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_that_are_twice_there_refuse_the_archive(
    tmp_path: Path, make: Make, names: tuple[str, str]
) -> None:
    """One name twice, in another case, or a file that is a folder too, take nothing."""
    _refused(_source(tmp_path, make([(name, b"x") for name in names])), tmp_path)


def test_too_many_entries_refuse_the_archive(tmp_path: Path) -> None:
    """As many entries as the bound are read, and one more takes nothing."""
    intake = Intake("source")
    for _ in range(ENTRIES):
        intake.entry("d/")
    with pytest.raises(Invalid, match="entries"):
        intake.entry("d/")
    entry = tarfile.TarInfo("d/")
    entry.type = tarfile.DIRTYPE
    path = _source(tmp_path, entry.tobuf() * (ENTRIES + 1) + bytes(1024))
    assert "entries" in _refused(path, tmp_path)


def test_a_full_disk_is_no_fault_of_the_archive(tmp_path: Path) -> None:
    """Where the disk takes no more of what is unpacked, that is the error, and nothing stays."""
    path = _source(tmp_path, _tar())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
        with pytest.raises(Storage), open_source(path, str(tmp_path)):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == [tmp_path / "source"]


def test_bombs_are_refused(tmp_path: Path) -> None:
    """What unpacks to more than 200 times its size takes nothing, packed in whatever way."""
    zeros = bytes(20 * 1024 * 1024)
    for content in (tar_of([("a.md", zeros)]), zip_of([("a.md", zeros)])):
        assert "200 times" in _refused(_source(tmp_path, content), tmp_path)
    assert len(_taken(_source(tmp_path, zip_of([("a.md", zeros[: 2**20])])), tmp_path)) == 1


def test_entries_that_share_their_bytes_refuse_the_archive(tmp_path: Path) -> None:
    """Many entries of a zip directory that point to the same bytes are refused."""
    kernel = os.urandom(600_000)
    one = zip_of([("0000.bin", kernel)])
    at = one.index(b"PK\1\2")
    entry, end = one[at : one.index(b"PK\5\6")], bytearray(one[one.index(b"PK\5\6") :])
    entries = b"".join(entry.replace(b"0000", b"%04d" % n) for n in range(2000))
    end[8:12] = (2000).to_bytes(2, "little") * 2
    end[12:16] = len(entries).to_bytes(4, "little")
    assert "share" in _refused(_source(tmp_path, one[:at] + entries + bytes(end)), tmp_path)


def test_what_unpacks_to_nothing_again_and_again_is_refused(tmp_path: Path) -> None:
    """Entries that share their bytes are refused where these unpack to no byte at all."""
    nothing = b"\0\0\0\xff\xff" * 20_000 + b"\3\0"
    local = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 8, 0, 0, 0, len(nothing), 0, 1, 0)
    where = (20, 20, 0, 8, 0, 0, 0, len(nothing), 0, 6, 0, 0, 0, 0, 0, 0)
    entries = b"".join(
        struct.pack("<4s6H3L5H2L", b"PK\1\2", *where) + b"%06d" % number for number in range(20)
    )
    begin = len(local) + 1 + len(nothing)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 20, 20, len(entries), begin, 0)
    content = local + b"a" + nothing + entries + end
    assert "share" in _refused(_source(tmp_path, content), tmp_path)


@pytest.mark.parametrize("make", [_tar, _zip])
def test_a_truncated_archive_is_refused(tmp_path: Path, make: Callable[[], bytes]) -> None:
    """An archive that ends early takes nothing, wherever it ends."""
    content = make()
    for part in range(1, 50):
        cut = content[: max(len(content) * part // 50, 3)]
        assert "nothing was taken" in _refused(_source(tmp_path, cut), tmp_path)


def test_a_tar_that_ends_between_two_files_is_refused(tmp_path: Path) -> None:
    """A plain tar without its end is truncated, although each file in it is whole."""
    content = tar_of([("a.md", b"a"), ("b.md", b"b")], packed=False)
    assert "middle" in _refused(_source(tmp_path, content[:1024]), tmp_path)


@pytest.mark.parametrize("content", [_tar(packed=False), _tar(), _zip()])
@given(data=st.data())
def test_a_flipped_byte_breaks_nothing(content: bytes, data: st.DataObject) -> None:
    """A changed byte is an error, or changes what no sum protects; files are as large as said."""
    at = data.draw(st.integers(0, len(content) - 1))
    flipped = bytes([content[at] ^ data.draw(st.integers(1, 255))])
    _read(content[:at] + flipped + content[at + 1 :])


@given(st.sampled_from([b"PK\3\4", b"PK\5\6", b"\x1f\x8b\x08", b""]), st.binary(max_size=600))
def test_any_bytes_are_a_source_or_an_error(sign: bytes, content: bytes) -> None:
    """Nothing that begins like an archive raises anything but its error."""
    _read(sign + content)


def _read(content: bytes) -> None:
    with (
        tempfile.TemporaryDirectory() as name,
        suppress(Invalid),
        open_source(_source(Path(name), content), name) as source,
    ):
        for file in source.names():
            assert len(source.read(file)) == source.size(file)


def test_where_nothing_can_be_unpacked_that_is_the_error(tmp_path: Path) -> None:
    """A folder for unpacking that is not there is a failure of the disk, not of the archive."""
    path = _source(tmp_path, _tar())
    with pytest.raises(Storage), open_source(path, str(tmp_path / "none")):
        pass
