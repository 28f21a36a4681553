"""Ask memd, within a deadline, for memories and for what stands in place of blocks. Blocks.

All calls for one request have the same deadline; after it the caller sends what it knows.
"""

import os
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from memd.base.canonical import text_of
from memd.base.errors import MemdError
from memd.base.places import Places, find
from memd.client.blocking import Client
from memd.client.errors import DaemonUnavailableError
from memd.client.held import HeldClient
from memd.client.launch import connect
from memd.client.sent import (
    KEEP,
    Message,
    SentConversation,
    calls_of,
    last_reply,
    outlines_in_frame,
    results,
)

_NAME = "keeper"  # to which extraction needs no consent (memd.extract.starting)
_MOST_CHARACTERS = 340_000  # of a result in a frame: JSON has up to 6 bytes for a character


class Planner:
    """memd's decisions about one conversation, and calls of other methods for it.

    Methods raise TimeoutError and MemdError.

    ``session`` are the parameters of every call that name the project and the session. ``socket``
    is the daemon's, ``None`` for that of the user's own daemon, which is started where none runs.
    """

    def __init__(self, socket: str | None, session: Mapping[str, Any]) -> None:
        self.sent = SentConversation()
        self._session = dict(session)
        self._socket = socket
        self._client = HeldClient()
        self._may_start = socket is None  # until a daemon was started by a call, or cannot be
        self._lock = threading.Lock()  # held while the connection is used

    def new_client(self, *, start: bool = False) -> Client:
        """Return a new connection to the daemon, which the caller closes.

        With ``start`` the user's own daemon is started where none runs.
        """
        if self._socket is not None:
            return Client(self._socket, name=_NAME)
        starts = start and self._may_start
        self._may_start = self._may_start and not starts
        client = connect(_own_places(), os.environ, name=_NAME, start=starts)
        self._may_start = self._may_start or starts  # no start has failed
        return client

    def call(self, method: str, params: Mapping[str, Any], deadline: float) -> Any:
        """Call a method and return its result; ``deadline`` is in monotonic seconds."""
        with self._lock_until(deadline):
            return self._call(method, params, deadline)

    def plan(
        self, messages: Sequence[Message], plan_params: Mapping[str, Any], deadline: float
    ) -> dict[str, Any]:
        """Have memd decide about a conversation as it would be sent, and return its answer.

        ``plan_params`` are parameters of ``context.plan``, ``deadline`` is in monotonic seconds.
        """
        with self._lock_until(deadline):
            to_send = self.sent.with_replacements(messages)
            shown = outlines_in_frame(to_send)
            # memd does not get the text of large results, so these are stored one by one.
            pairs = zip(to_send, shown, strict=True)
            large = [whole if outline is not whole else {} for whole, outline in pairs]
            if any(large):
                self._store(large, to_send, plan_params["reader"], {}, deadline)
            # The other decisions are carried out already.
            keep_decisions = [
                each for each in self.sent.decisions.values() if each["action"] == KEEP
            ]
            conversation = {"messages": shown, "decisions": keep_decisions}
            answer: dict[str, Any] = self._call(
                "context.plan", {**plan_params, **conversation}, deadline
            )
            self.sent.add_decisions(answer["decisions"])
            return answer

    def store(
        self,
        messages: Sequence[Message],
        reader: str,
        tools: Mapping[str, str],
        deadline: float,
    ) -> None:
        """Have memd decide about each result alone, without the conversation around it.

        ``reader`` is the tool that reads stored results, ``tools`` are the tools' names by call id.
        """
        with self._lock_until(deadline):
            self._store(messages, messages, reader, tools, deadline)

    def _store(
        self,
        large: Sequence[Message],
        messages: Sequence[Message],
        reader: str,
        tools: Mapping[str, str],
        deadline: float,
    ) -> None:
        """Have memd decide about the results in some of the messages, one call for each result.

        ``large`` is ``messages`` with ``{}`` for each message to leave out. ``reader`` is the tool
        that reads stored results, ``tools`` are the tools' names by the ids of earlier calls.
        """
        tools = {**tools, **calls_of(messages)}
        reply_place = last_reply(messages)
        for place, message in enumerate(large):
            for name, block in results([message]):
                if name in self.sent.decisions:  # a decision stays
                    continue
                call_id = name.tool_use_id
                # What stands before a reply was sent whole. Without a reader memd stores nothing.
                params = {
                    "tool_use_id": call_id,
                    "tool": tools.get(call_id, ""),
                    "reader": reader if place > reply_place else "",
                }
                with _text_param(text_of(block["content"]) or "") as text_param:
                    answer = self._call("context.spill", params | text_param, deadline)
                if answer["decision"]:
                    self.sent.add_decisions([answer["decision"] | name._asdict()])
        self.sent.freeze(large)

    def _call(self, method: str, params: Mapping[str, Any], deadline: float) -> Any:
        """Call a method, once more on a new connection if it is lost; then start a daemon."""
        call = partial(self._call_once, method, {**self._session, **params}, deadline)
        try:
            return call()
        except DaemonUnavailableError:  # the daemon may have been restarted
            self._client.close()
        try:
            return call()
        except DaemonUnavailableError:
            self._client.close()
            if self._may_start:
                self._may_start = False
                threading.Thread(target=_start_daemon, daemon=True).start()
            raise

    def _call_once(self, method: str, params: Mapping[str, Any], deadline: float) -> Any:
        """Return the daemon's answer before the monotonic second ``deadline``. Raises MemdError."""
        client = self._client.get(self.new_client)
        return client.call(method, params, max(deadline - time.monotonic(), 0))

    @contextmanager
    def _lock_until(self, deadline: float) -> Iterator[None]:
        """Hold the lock during the block. Raises TimeoutError if another thread has it too long.

        ``deadline`` is the monotonic second at which waiting for the lock ends.
        """
        if not self._lock.acquire(timeout=max(deadline - time.monotonic(), 0)):
            raise TimeoutError
        try:
            yield
        finally:
            self._lock.release()


@contextmanager
def _text_param(text: str) -> Iterator[dict[str, str]]:
    """Yield the parameter with a result's text, or with the path of a private file that has it.

    A text that may not fit in a frame is put into a file, which is removed after the block.
    """
    if len(text) <= _MOST_CHARACTERS:
        yield {"content": text}
        return
    descriptor, path = tempfile.mkstemp(prefix="memd-")
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        yield {"source_path": path}
    finally:
        os.unlink(path)


def _own_places() -> Places:
    """Return the paths of the daemon of this user."""
    return find(os.environ, os.path.expanduser("~"))


def _start_daemon() -> None:
    """Start this user's daemon if it does not run; errors are ignored."""
    with suppress(MemdError, OSError):
        connect(_own_places(), os.environ, name=_NAME).close()
