"""The sample conversations."""

import json
import stat
from pathlib import Path

import pytest

from memd.documents import secrets
from memd.transcripts.reading import read
from tests.support import samples


@pytest.mark.parametrize("name", [*samples.NAMES, samples.LONG])
def test_a_sample_is_a_transcript(name: str, tmp_path: Path) -> None:
    """Every line is JSON, no placeholder is left, and the file is its owner's alone."""
    target = tmp_path / "a" / "s.jsonl"
    samples.write(name, str(target), cwd='/p/"quoted"', session="s1")
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    assert {line.get("cwd", '/p/"quoted"') for line in lines} == {'/p/"quoted"'}
    assert {line.get("sessionId", "s1") for line in lines} == {"s1"}
    assert "{{" not in target.read_text()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert read(str(target)).messages


def test_the_credential_is_made_at_run_time(tmp_path: Path) -> None:
    """It looks like one, stands in the second conversation and in no file of the program."""
    assert secrets.find(samples.secret())
    samples.write("second-day", str(tmp_path / "s.jsonl"), cwd="/p", session="s")
    assert samples.secret() in (tmp_path / "s.jsonl").read_text()
    for file in Path(samples.__file__).parent.iterdir():
        if file.is_file():
            assert samples.secret() not in file.read_text()


def test_an_unknown_sample_is_an_error(tmp_path: Path) -> None:
    """A wrong name is told apart from an empty conversation."""
    with pytest.raises(FileNotFoundError):
        samples.write("third-day", str(tmp_path / "s.jsonl"), cwd="/p", session="s")
