"""Memberships: files of the user's own, replaced whole, read with suspicion."""

import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memd.base.errors import MemdError, Off, Refused, Storage
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
    with pytest.raises(Off):
        memberships.remove("/mem/clone")


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
    except Refused:
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
        with suppress(Storage):
            Memberships(here, FaultyDisk(countdown)).add(other, OTHER)
        reached = countdown.reached
        rows = {row.directory: row for row in Memberships(here).all()}
        assert Memberships(here).token(rows["/mem/app"]) == TOKEN
        assert Memberships(here).problems() == ()
    assert "/mem/b" in rows
    assert n > 10


@given(st.text(max_size=60))
def test_an_address_is_given_or_refused(url: str) -> None:
    """No text makes the reader of addresses fail in another way, and none reaches a header."""
    try:
        address = server_address(f"https://{url}")
    except MemdError:
        return
    assert address.isascii()
    assert not set(address) & set(" \r\n\t@?#")
