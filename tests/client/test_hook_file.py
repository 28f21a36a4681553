"""The hook's own place."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.base.errors import Refused
from memd.base.places import Places
from memd.client import hook_file
from tests.support.daemon import throw_away_home

NAMES = ["hook.c", "hook.py", "hook_body.py", "interpreter", "python"]


@pytest.fixture(name="places")
def _places() -> Iterator[Places]:
    """Give the places of a home of the test's own."""
    with throw_away_home() as home:
        yield home.places


def test_it_is_written_and_taken_away(places: Places) -> None:
    """Private copies and a link without a version; nothing is left behind, of others' all."""
    hook_file.write(places)
    assert hook_file.is_current(places)
    folder = Path(places.data_dir)
    assert sorted(os.listdir(folder)) == NAMES
    for name, source in hook_file.FILES.items():
        assert (folder / name).read_bytes() == Path(source).read_bytes()
    assert (folder / "hook.py").stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "interpreter").readlink().name in {"python", "python3"}
    assert os.access(folder / "python", os.X_OK)
    (folder / "other").touch()
    (folder / "__pycache__").mkdir()
    hook_file.remove(places)
    assert os.listdir(folder) == ["other"]
    (folder / "other").unlink()
    hook_file.remove(places)
    assert not folder.exists()


def test_another_version_is_brought_up_to_date(places: Places) -> None:
    """A daemon replaces an older file, a link elsewhere and a mark; where none is it makes none."""
    hook_file.refresh(places)
    assert not os.path.exists(places.data_dir)
    folder = Path(places.data_dir)
    for spoil in (
        lambda: (folder / "hook.py").write_text("older"),
        (folder / "hook_body.py").unlink,
        (folder / "python").unlink,
        lambda: (folder / "hook.c").write_text("older"),
        lambda: os.rename(folder / "elsewhere", folder / "interpreter"),
        (folder / "orphaned").touch,
    ):
        hook_file.write(places)
        (folder / "elsewhere").symlink_to("/elsewhere/python")
        spoil()
        (folder / "elsewhere").unlink(missing_ok=True)
        assert not hook_file.is_current(places)
        hook_file.refresh(places)
        assert hook_file.is_current(places)
        assert sorted(os.listdir(folder)) == NAMES


def test_a_failed_write_leaves_the_old_file(places: Places) -> None:
    """Where the new one cannot be put in place the old one stays whole, and no draft stays."""
    hook_file.write(places)
    hook = Path(hook_file.hook_path(places))
    hook.unlink()
    hook.mkdir()
    (hook / "full").touch()
    with pytest.raises(OSError, match="directory"):
        hook_file.write(places)
    assert sorted(os.listdir(places.data_dir)) == NAMES
    assert os.listdir(hook) == ["full"]


def test_a_python_that_does_not_know_itself_is_refused(places: Places) -> None:
    """Without a path of the interpreter nothing is written."""
    with pytest.raises(Refused):
        hook_file.write(places, "")
    assert not os.path.exists(places.data_dir)


def test_the_native_hook_takes_the_place_of_the_link(places: Places) -> None:
    """After an update the link stands in until the hook is compiled; a stale draft is no target."""
    hook_file.write(places)
    program, victim = Path(places.data_dir, "python"), Path(places.data_dir, "victim")
    was_native = not program.is_symlink()
    Path(hook_file.hook_path(places)).write_text("older")
    hook_file.refresh(places)
    assert program.is_symlink()
    victim.write_text("mine")
    Path(places.data_dir, f".draft-{os.getpid()}").symlink_to(victim)
    hook_file.make_native(places)
    assert program.is_symlink() != was_native
    assert victim.read_text() == "mine"
    victim.unlink()
    assert sorted(os.listdir(places.data_dir)) == NAMES
