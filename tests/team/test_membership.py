"""Memberships: files of the user's own, replaced whole, read with suspicion."""

import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memd.core.errors import MemdError
from memd.files.directory import UnwrittenFileError
from memd.team.errors import TeamNotJoinedError, TeamRefusedError
from memd.team.membership import Memberships, server_address
from memd.team.values import Membership
from tests.support.faults import Countdown, FaultyDisk

TOKEN, OTHER = "t" * 43, "u" * 43
ROW = Membership(
    root="/src/app",
    directory="/mem/app",
    server="https://team.example:8790",
    repository="r1",
    remote="github.com/acme/app",
    member="anna",
    device="laptop",
    token="",
    at=1_700_000_000.0,
)


def folder(tmp_path: Path) -> Path:
    """Return the folder of a user's settings, which is not made yet."""
    return tmp_path / "config" / "memd"


def test_what_is_added_is_read_by_the_next_daemon(tmp_path: Path) -> None:
    """A membership and its token survive; both files are the user's alone."""
    here = folder(tmp_path)
    added = Memberships(str(here)).add(ROW, TOKEN)
    read = Memberships(str(here))
    assert (read.of("/mem/app"), read.token(added), read.problems()) == (added, TOKEN, ())
    assert (read.joined("/mem/app"), read.joined("/mem/other")) == (True, False)
    assert {path.stat().st_mode & 0o777 for path in here.iterdir()} == {0o600}
    assert len(list(here.iterdir())) == 2


def test_a_token_serves_all_clones_and_goes_with_the_last(tmp_path: Path) -> None:
    """One token a member and server; leaving with the last directory removes its file."""
    memberships = Memberships(str(folder(tmp_path)))
    first = memberships.add(ROW, TOKEN)
    second = memberships.add(replace(ROW, directory="/mem/clone", at=ROW.at + 1), OTHER)
    assert memberships.token_for(ROW.server) == second
    assert memberships.token_for("https://other") is None
    assert memberships.token(first) == OTHER
    assert not memberships.is_last(first)
    memberships.remove("/mem/app")
    assert memberships.is_last(second)
    assert memberships.token(second) == OTHER
    memberships.remove("/mem/clone")
    assert memberships.token(second) == ""
    assert memberships.all() == ()
    with pytest.raises(TeamNotJoinedError):
        memberships.remove("/mem/clone")


def test_links_lead_to_the_same_membership(tmp_path: Path) -> None:
    """A directory that is reached through a link is the one that joined."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    memberships = Memberships(str(folder(tmp_path)))
    memberships.add(replace(ROW, directory=str(tmp_path / "link")), TOKEN)
    assert memberships.joined(str(tmp_path / "real"))
    memberships.remove(str(tmp_path / "link"))
    assert memberships.all() == ()


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_what_others_may_write_joins_nothing(tmp_path: Path, mode: int) -> None:
    """A file that others may write is ignored, and the sentence says what helps."""
    memberships = Memberships(str(folder(tmp_path)))
    memberships.add(ROW, TOKEN)
    os.chmod(f"{memberships.folder}/team.toml", mode)
    assert memberships.all() == ()
    assert "chmod go-w" in memberships.problems()[0]


def test_a_token_that_others_may_read_is_none(tmp_path: Path) -> None:
    """An open token file, or a link to one, counts for nothing and is named."""
    memberships = Memberships(str(folder(tmp_path)))
    row = memberships.add(ROW, TOKEN)
    path = Path(memberships.folder, row.token)
    path.chmod(0o640)
    assert memberships.token(row) == ""
    assert str(path) in memberships.problems()[0]
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    path.chmod(0o600)
    assert memberships.token(row) == ""


def test_a_linked_file_joins_nothing(tmp_path: Path) -> None:
    """A link in the place of team.toml is not followed."""
    memberships = Memberships(str(folder(tmp_path)))
    memberships.add(ROW, TOKEN)
    path = Path(memberships.folder, "team.toml")
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert memberships.all() == ()
    assert "link" in memberships.problems()[0]


@pytest.mark.parametrize(
    "damage",
    [
        (b'server = "https://team.example:8790"', b'server = "http://team.example:8790"'),
        (b'server = "https://team.example:8790"', b'server = "https://team.example:8790/x"'),
        (b'token = "team-', b'token = "../../team-'),
        (b'root = "/src/app"', b"root = 7"),
        (b'member = "anna"', b'member = ""'),
        (b"at = 1700000000.0", b"at = true"),
        (b"[[membership]]", b"[membership]"),
        (b"[[membership]]", b"\xff"),
        (b"[[membership]]", b"[[[["),
    ],
)
def test_a_damaged_row_joins_nothing(tmp_path: Path, damage: tuple[bytes, bytes]) -> None:
    """What no memd wrote is passed over with a sentence, never an exception."""
    memberships = Memberships(str(folder(tmp_path)))
    memberships.add(ROW, TOKEN)
    path = Path(memberships.folder, "team.toml")
    content = path.read_bytes()
    assert damage[0] in content
    path.write_bytes(content.replace(*damage))
    assert memberships.all() == ()
    assert len(memberships.problems()) == 1


@given(st.binary(max_size=300))
def test_no_file_breaks_the_reader(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    """Any bytes in team.toml give memberships or sentences."""
    here = tmp_path_factory.mktemp("config")
    (here / "team.toml").write_bytes(content)
    (here / "team.toml").chmod(0o600)
    assert Memberships(str(here)).all() == ()


@given(st.text(min_size=1, max_size=40))
def test_a_name_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    """Whatever a path or a member is called, the file gives it back, or it is refused."""
    memberships = Memberships(str(tmp_path_factory.mktemp("config")))
    try:
        row = memberships.add(replace(ROW, root=f"/src/{name}", member=name), TOKEN)
    except TeamRefusedError:
        assert any("\ud800" <= character <= "\udfff" for character in name)
    else:
        assert Memberships(memberships.folder).all() == (row,)


def test_at_each_failing_call_the_earlier_memberships_stand(tmp_path: Path) -> None:
    """A full disk at any call leaves the rows that were there, and no row without its token."""
    n, reached = 0, True
    while reached:
        n += 1
        here = str(tmp_path / str(n))
        Memberships(here).add(ROW, TOKEN)
        other = replace(ROW, directory="/mem/b", member="bob", at=ROW.at + 1)
        countdown = Countdown(n)
        with suppress(UnwrittenFileError):
            Memberships(here, FaultyDisk(countdown)).add(other, OTHER)
        reached = countdown.reached
        rows = {row.directory: row for row in Memberships(here).all()}
        assert Memberships(here).token(rows["/mem/app"]) == TOKEN
        assert Memberships(here).problems() == ()
    assert "/mem/b" in rows
    assert n > 10


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://team.example", "https://team.example"),
        ("HTTPS://Team.Example:443/", "https://team.example"),
        (" https://team.example:8790 ", "https://team.example:8790"),
        ("http://127.0.0.1:8790", "http://127.0.0.1:8790"),
        ("http://localhost:80", "http://localhost"),
        ("http://[::1]:8790/", "http://[::1]:8790"),
        ("https://bücher.example", "https://xn--bcher-kva.example"),
    ],
)
def test_an_address_is_scheme_host_and_port(url: str, address: str) -> None:
    """One server has one address."""
    assert server_address(url) == address
    assert server_address(address) == address


@pytest.mark.parametrize(
    "url",
    [
        "",
        "team.example",
        "ftp://team.example",
        "http://team.example",
        "http://192.168.1.2",
        "http://localhost.example",
        "http://127.0.0.1.example",
        "https://anna@team.example",
        "https://anna:pw@team.example",
        "https://team.example/path",
        "https://team.example?x=1",
        "https://team.example#x",
        "https://team.example:99999",
        "https://",
        "https://a b",
        "https://a\r\nb",
        "https://[::1",
        "file:///etc/passwd",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    """Plain http beyond this machine, credentials, paths and nonsense are refused."""
    with pytest.raises(TeamRefusedError):
        server_address(url)


@given(st.text(max_size=60))
def test_an_address_is_given_or_refused(url: str) -> None:
    """No text makes the reader of addresses fail in another way, and none reaches a header."""
    try:
        address = server_address(f"https://{url}")
    except MemdError:
        return
    assert address.isascii()
    assert not set(address) & set(" \r\n\t@?#")
