"""memd as a command."""

import subprocess
import sys

import pytest

from memd import __version__
from memd.__main__ import main


def test_flags_answer_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Help and version go to standard output with status 0."""
    assert main(["--help"]) == 0
    assert "serve" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"memd {__version__}\n"


def test_an_unknown_word_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """What memd does not know is answered with the usage on standard error and status 2."""
    assert main(["dance"]) == 2
    assert "usage" in capsys.readouterr().err


def test_the_module_can_be_run() -> None:
    """Python -m memd is the same command."""
    done = subprocess.run(
        [sys.executable, "-m", "memd", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("memd ")
