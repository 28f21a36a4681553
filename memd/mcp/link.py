"""Hold the bridge's connection to the daemon, made at the first call and after a loss."""

import os
import time
from collections.abc import Mapping
from typing import Any

from memd import __version__
from memd.base.places import Places
from memd.client.errors import DaemonUnavailableError
from memd.client.launch import Client, connect

ANSWER_SECONDS = 20.0  # clients abandon a tool call after 60 s
START_SECONDS = 10.0  # for a daemon to start
# Seconds before the second and the third attempt; a daemon that is being killed may still accept
# the second one.
_PAUSES = (0.0, 0.1)
_NAME_CHARACTERS = 60
_WRITE_METHODS = ("memory.write", "memory.delete", "memory.undo", "message.send")
_METHODS_WITHOUT_CWD = ("message.receive", "message.ack")


class DaemonLink:
    """Calls the daemon; with ``start`` it starts one if none runs. Used by one thread."""

    def __init__(self, places: Places, environ: Mapping[str, str], *, start: bool) -> None:
        self._places = places
        self._environ = environ
        self._start = start
        self._connection: Client | None = None
        self._name = "mcp"  # of the client, for the daemon

    def introduce(self, client: str) -> None:
        """Set the name of the client's program, which the history stores with its changes."""
        name = f"mcp {client}".strip()[:_NAME_CHARACTERS]
        if name != self._name:
            self._name = name
            self.close()

    def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """Return the result of a method; call again up to twice if the connection is lost.

        Writes get a request id, so one that is sent again is done once. Raises the error
        that the daemon answers, AnswerTimeoutError, DaemonUnavailableError, and ValueError for
        params that are not JSON.
        """
        if method in _WRITE_METHODS:
            params = {**params, "request_id": os.urandom(16).hex()}
        if method in _METHODS_WITHOUT_CWD:
            params = {name: value for name, value in params.items() if name != "cwd"}
        for pause in _PAUSES:
            try:
                return self.connection().call(method, params, ANSWER_SECONDS)
            except DaemonUnavailableError:
                if self._connection is None:  # there is no daemon, or none could be started
                    raise
                self.close()
                time.sleep(pause)
        return self.connection().call(method, params, ANSWER_SECONDS)

    def connection(self) -> Client:
        """Return the connection, which is made if there is none.

        Raises DaemonUnavailableError and Refused.
        """
        if self._connection is None:
            self._connection = connect(
                self._places,
                self._environ,
                name=self._name,
                version=__version__,
                start=self._start,
                deadline=START_SECONDS,
            )
        return self._connection

    def close(self) -> None:
        """Close the connection; the next call connects again."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None
