"""Ask memd, within a deadline, what to send in place of a conversation's blocks. Blocks.

Rules of this file
- All calls for one request have the same deadline; after it the caller sends what it knows.
- Decisions that the client made without memd are reported before memd is asked again.
"""

import os
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from typing import Any

from memd.client.blocking import Client
from memd.client.errors import AnswerTimeoutError, DaemonUnavailableError
from memd.client.held import HeldClient
from memd.client.launch import connect
from memd.client.sent import Message, SentConversation, calls_of, last_reply, results
from memd.core.canonical import text_of
from memd.core.errors import MemdError
from memd.core.places import Places, find

__all__ = ["Message", "Planner", "SentConversation", "results"]

_NAME = "keeper"
_FRAME_BYTES = 2 * 1024 * 1024  # of messages or of a result: half of what a frame may have
_LATE_SECONDS = 10.0  # to send memd, in a thread, what could not be sent in time
_REPORTED = 500  # decisions in one frame, with their texts of 2,000 bytes


class Planner:
    """memd's decisions about one conversation. Methods raise TimeoutError and MemdError.

    ``session`` are parameters of every call. ``socket`` is the daemon's, ``None`` for that of the
    user's own daemon, which is started where none runs.
    """

    def __init__(self, socket: str | None, session: Mapping[str, Any]) -> None:
        self.sent = SentConversation()
        self._session = dict(session)
        self._socket = socket
        self._client = HeldClient()
        self._may_start = socket is None
        self._lock = threading.Lock()
        self.is_telling = False

    def connected(self) -> Client:
        """Return a new connection, which the caller closes."""
        if self._socket is not None:
            return Client(self._socket, name=_NAME)
        return connect(_places(), os.environ, name=_NAME, start=False)

    def plan(
        self, messages: Sequence[Message], given: Mapping[str, Any], until: float
    ) -> dict[str, Any]:
        """Have memd decide about the messages that it does not have, and return its last answer.

        ``given`` are parameters of ``context.plan``, ``until`` is in monotonic seconds. Raises also
        what ``canonical`` raises. After a timeout a thread goes on sending the messages: otherwise
        memd would never get the whole of a long conversation.
        """
        answer = None
        try:
            answer = self._plan(messages, given, until)
        except (TimeoutError, AnswerTimeoutError):
            self.sent.missed = True
            self.tell(messages, given)
            raise
        finally:
            self.sent.missed = answer is None
        return answer

    def tell(self, messages: Sequence[Message], given: Mapping[str, Any]) -> None:
        """Send messages to memd in a thread, without waiting; nothing is raised."""
        if not self.is_telling:
            self.is_telling = True
            threading.Thread(
                target=self._send_conversation, args=(messages, given), daemon=True
            ).start()

    def _send_conversation(self, messages: Sequence[Message], given: Mapping[str, Any]) -> None:
        """Send memd a conversation for later plans, in a thread; errors are ignored."""
        try:
            with suppress(MemdError, OSError, LookupError, TypeError, ValueError):
                self._plan(messages, given, time.monotonic() + _LATE_SECONDS)
        finally:
            self.is_telling = False
            with self._lock:  # so that a request that uses the connection now is not cut off
                self.close()

    def _plan(
        self, messages: Sequence[Message], given: Mapping[str, Any], until: float
    ) -> dict[str, Any]:
        """Send the messages in batches until memd has all, and return its last answer."""
        with self._locked(until):
            if not self.sent.follow(messages, lambda: time.monotonic() < until):
                raise TimeoutError
            self._report(until)
            outlined = [each.message if each.is_outlined else {} for each in self.sent.messages]
            if any(outlined):
                self._store(outlined, messages, given["reader"], {}, until)
            while True:
                answer = self._planned(given, until)
                if answer["status"] == "resync":
                    self.sent.agree(answer["checkpoints"])
                elif self.sent.agreed == len(messages):
                    return answer

    def _planned(self, given: Mapping[str, Any], until: float) -> dict[str, Any]:
        """Have memd plan as many of its missing messages as one frame can have."""
        start, size = self.sent.agreed, 0
        batch: list[Message] = []
        for each in islice(self.sent.messages, start, None):
            size += each.size
            if batch and size > _FRAME_BYTES:
                while len(batch) > 1 and batch[-1]["role"] != "assistant":
                    batch.pop()  # memd takes a result at the end of a batch for one not sent yet
                break
            batch.append(each.outline)
        place = {"from": start, "hash": self.sent.hash_at(start), "messages": batch}
        answer: dict[str, Any] = self._call("context.plan", {**given, **place}, until)
        if answer["status"] == "ok":
            self.sent.agreed = start + len(batch)
            self.sent.learn(answer["decisions"])
        return answer

    def store(
        self,
        messages: Sequence[Message],
        reader: str,
        tools: Mapping[str, str],
        until: float,
    ) -> None:
        """Have memd decide about each result alone; ``tools`` are the tools' names by call id."""
        with self._locked(until):
            self._report(until)
            self._store(messages, messages, reader, tools, until)

    def _store(
        self,
        large: Sequence[Message],
        messages: Sequence[Message],
        reader: str,
        tools: Mapping[str, str],
        until: float,
    ) -> None:
        """Have memd decide about the results in ``large``, where other messages are ``{}``.

        ``reader`` is the tool that reads stored results, ``tools`` the tool of each earlier call.
        """
        tools = {**tools, **calls_of(messages)}
        replied = last_reply(messages)
        for place, message in enumerate(large):
            for name, block in results([message]):
                if name in self.sent.decisions:
                    continue
                call = name.tool_use_id
                # What stands before a reply was sent whole. Without a reader memd stores nothing.
                params = {
                    "tool_use_id": call,
                    "tool": tools.get(call, ""),
                    "reader": reader if place > replied else "",
                }
                with _carried(text_of(block["content"]) or "") as carried:
                    answer = self._call("context.spill", params | carried, until)
                if answer["decision"]:
                    self.sent.learn([answer["decision"] | name._asdict()])
        self.sent.freeze(large)

    def _report(self, until: float) -> None:
        """Send memd the decisions that the client made without it."""
        while unreported := list(islice(self.sent.unreported, _REPORTED)):
            decisions = [self.sent.decisions[name] for name in unreported]
            self._call("context.restore", {"decisions": decisions}, until)
            self.sent.unreported.difference_update(unreported)

    def _call(self, method: str, params: Mapping[str, Any], until: float) -> Any:
        """Call a method, once more on a new connection if it is lost; then start a daemon."""
        call = partial(self._answer_of, method, {**self._session, **params}, until)
        try:
            return call()
        except DaemonUnavailableError:  # the daemon may have been restarted
            self._client.close()
        try:
            return call()
        except DaemonUnavailableError:
            self._client.close()
            self._start()
            raise

    def _answer_of(self, method: str, params: Mapping[str, Any], until: float) -> Any:
        """Return the daemon's answer before the monotonic second ``until``. Raises MemdError."""
        client = self._client.get(self.connected)
        return client.call(method, params, max(until - time.monotonic(), 0))

    def close(self) -> None:
        """Close the connection unless a call uses it; the next call connects again."""
        if self._lock.acquire(blocking=False):
            self._client.close()
            self._lock.release()

    def _start(self) -> None:
        """Start a daemon in a thread, only once, for later requests."""
        if self._may_start:
            self._may_start = False
            threading.Thread(target=_start, daemon=True).start()

    @contextmanager
    def _locked(self, until: float) -> Iterator[None]:
        """Hold the lock during the block. Raises TimeoutError if it stays taken until ``until``."""
        if not self._lock.acquire(timeout=max(until - time.monotonic(), 0)):
            raise TimeoutError
        try:
            yield
        finally:
            self._lock.release()


@contextmanager
def _carried(text: str) -> Iterator[dict[str, str]]:
    """Yield the parameter with a result: its text, or the path of a private file if it is large."""
    if len(text) <= _FRAME_BYTES // 6:  # the most bytes that JSON has for a character
        yield {"content": text}
        return
    descriptor, path = tempfile.mkstemp(prefix="memd-")
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        yield {"source_path": path}
    finally:
        os.unlink(path)


def _places() -> Places:
    """Return the paths of the daemon of this user."""
    return find(os.environ, os.path.expanduser("~"))


def _start() -> None:
    """Start the daemon if it does not run; errors are ignored."""
    with suppress(MemdError, OSError):
        connect(_places(), os.environ, name=_NAME).close()
