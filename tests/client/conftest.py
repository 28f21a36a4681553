"""What several files of this folder need."""

from collections.abc import Iterator

import pytest

from tests.support.messages import MessagesServer, messages_server, text


@pytest.fixture(name="server")
def _server() -> Iterator[MessagesServer]:
    with messages_server(text("done")) as server:
        yield server
