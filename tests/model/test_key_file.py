"""A key in a file of its own."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.model.key_file import (
    EnvFileUnusableError,
    KeyFileUnusableError,
    read_key,
    read_variables,
)


def key_file(folder: Path, content: bytes, mode: int = 0o600) -> str:
    """Write a file that holds a key."""
    path = folder / "key"
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    """The refusal says what to do and not what the file holds."""
    with pytest.raises(KeyFileUnusableError) as caught:
        read_key(key_file(tmp_path, b"sk-key", mode))
    assert "sk-key" not in str(caught.value)
    assert "chmod 600" in caught.value.hint


def test_what_is_no_file_with_a_key_is_refused(tmp_path: Path) -> None:
    """A missing file, a folder, a pipe and an empty file hold no key, and nobody waits."""
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "folder").mkdir(mode=0o700)
    empty = key_file(tmp_path, b" \n")
    for path in (tmp_path / "missing", tmp_path / "folder", tmp_path / "pipe", empty):
        with pytest.raises(KeyFileUnusableError):
            read_key(str(path))


@given(st.binary(max_size=40))
def test_any_bytes_are_a_key_or_refused(content: bytes) -> None:
    """What comes out can stand in a header."""
    with tempfile.TemporaryDirectory() as folder:
        path = key_file(Path(folder), content)
        try:
            key = read_key(path)
        except KeyFileUnusableError:
            return
        assert key
        assert key.isascii()
        assert key.isprintable()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_variables_that_others_may_read_do_not_count(tmp_path: Path, mode: int) -> None:
    """The refusal names the file and the remedy."""
    path = key_file(tmp_path, b"A=1", mode)
    with pytest.raises(EnvFileUnusableError, match="may be read by others") as caught:
        read_variables(path)
    assert "chmod 600" in caught.value.hint


@given(st.binary(max_size=60))
def test_any_env_file_can_be_put_into_an_environment(content: bytes) -> None:
    """Whatever the file holds, the kernel takes what is read from it."""
    with tempfile.TemporaryDirectory() as folder:
        variables = read_variables(key_file(Path(folder), content))
    before = dict(os.environ)
    os.environ.update(variables)
    for name in variables.keys() - before:
        del os.environ[name]
    os.environ.update(before)
