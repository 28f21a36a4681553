"""Why a path cannot be used."""

import errno
import os

from memd.files.errors import PathRefusedError, cause_of


def test_the_system_is_quoted() -> None:
    """The cause is the system's own sentence, or whatever the error says."""
    assert cause_of(OSError(errno.EIO, os.strerror(errno.EIO))) == os.strerror(errno.EIO)
    assert cause_of(OSError("odd")) == "odd"


def test_a_name_is_shown_safely() -> None:
    """What is not printable in a name does not reach the sentence."""
    assert PathRefusedError("a\nb", "it is odd").sentence == "the path a\\nb is refused: it is odd"
