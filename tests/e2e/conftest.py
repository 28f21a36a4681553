"""Fixtures of several files; figures of the real programs are told as those of long proofs."""

import subprocess
from collections.abc import Iterator

import pytest

from tests.soak.conftest import pytest_terminal_summary
from tests.support.daemon import Home, daemon_process
from tests.support.messages import MessagesServer, messages_server, text

__all__ = ["pytest_terminal_summary"]


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    """Serve a model that says one word."""
    with messages_server(text("Understood.")) as serving:
        yield serving


@pytest.fixture
def daemon(home: Home) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a daemon in the home."""
    with daemon_process(home) as process:
        yield process
