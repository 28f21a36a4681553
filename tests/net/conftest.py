"""One daemon a worker for most tests, each with a project of its own; homes for the others."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.net.kit import Home, Project
from tests.net.recorder import Recorder


@contextmanager
def _home() -> Iterator[Home]:
    path = Path(tempfile.mkdtemp(prefix="net-", dir="/tmp"))  # short: a socket's path has 107 bytes
    path.chmod(0o755)
    home = Home(path)
    try:
        yield home
    finally:
        home.stop()
        home.end_launched()
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def _shared_home() -> Iterator[Home]:
    with _home() as home:
        yield home


@pytest.fixture
def home(_shared_home: Home) -> Iterator[Home]:
    """Return a home with a daemon that many tests share; its settings are empty at first."""
    if _shared_home.process is None:
        _shared_home.start()
    yield _shared_home
    _shared_home.close_clients()
    _shared_home.configure("")


@pytest.fixture
def project(home: Home) -> Project:
    """Return a new project in the shared home."""
    return home.project()


@pytest.fixture
def model(home: Home) -> Iterator[Recorder]:
    """Return the model that the shared home asks; set its script or play answers."""
    recorder = Recorder()
    home.configure(recorder.settings())
    home.call("resume")  # the failures of an earlier test may have paused its model
    yield recorder
    recorder.close()


@pytest.fixture
def new_home() -> Iterator[Callable[[], Home]]:
    """Make homes of a test's own, without a daemon; what runs in them ends with the test."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(_home())


@pytest.fixture
def own(new_home: Callable[[], Home]) -> Home:
    """Return one home of the test's own, without a daemon."""
    return new_home()
