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

    ``session`` are the parameters of every call that name the project and the session. ``socket``
    is the daemon's, ``None`` for that of the user's own daemon, which is started where none runs.
    """

    def __init__(self, socket: str | None, session: Mapping[str, Any]) -> None:
        self.sent = SentConversation()
        self._session = dict(session)
        self._socket = socket
        self._client = HeldClient()
        self._may_start = socket is None  # until a daemon was started once
        self._lock = threading.Lock()  # held while ``sent`` and the connection are used
        self.is_sending = (
            False  # whether a thread sends memd the conversation, see ``send_in_thread``
        )

    def new_client(self) -> Client:
        """Return a new connection to the daemon, which the caller closes. None is started."""
        if self._socket is not None:
            return Client(self._socket, name=_NAME)
        return connect(_own_places(), os.environ, name=_NAME, start=False)

    def plan(
        self, messages: Sequence[Message], plan_params: Mapping[str, Any], deadline: float
    ) -> dict[str, Any]:
        """Have memd decide about the messages that it does not have, and return its last answer.

        ``plan_params`` are parameters of ``context.plan``, ``deadline`` is in monotonic seconds.
        Raises also what ``canonical`` raises. After a timeout a thread goes on sending the
        messages: otherwise memd would never get the whole of a long conversation.
        """
        answer = None
        try:
            answer = self._plan(messages, plan_params, deadline)
        except (TimeoutError, AnswerTimeoutError):
            self.sent.answer_is_missing = (
                True  # the thread that ``send_in_thread`` starts must know it
            )
            self.send_in_thread(messages, plan_params)
            raise
        finally:
            self.sent.answer_is_missing = answer is None
        return answer

    def send_in_thread(self, messages: Sequence[Message], plan_params: Mapping[str, Any]) -> None:
        """Send messages to memd in a thread, without waiting; nothing is raised.

        Nothing happens while such a thread still runs.
        """
        if not self.is_sending:
            self.is_sending = True
            threading.Thread(
                target=self._send_conversation, args=(messages, plan_params), daemon=True
            ).start()

    def _send_conversation(
        self, messages: Sequence[Message], plan_params: Mapping[str, Any]
    ) -> None:
        """Send memd a conversation for later plans, in a thread; errors are ignored."""
        try:
            with suppress(MemdError, OSError, LookupError, TypeError, ValueError):
                self._plan(messages, plan_params, time.monotonic() + _LATE_SECONDS)
        finally:
            self.is_sending = False
            with self._lock:  # so that a request that uses the connection now is not cut off
                self.close()

    def _plan(
        self, messages: Sequence[Message], plan_params: Mapping[str, Any], deadline: float
    ) -> dict[str, Any]:
        """Send the messages in batches until memd has all, and return its last answer."""
        with self._lock_until(deadline):
            if not self.sent.follow(messages, lambda: time.monotonic() < deadline):
                raise TimeoutError
            self._report(deadline)
            # ``context.plan`` gets outlines of large messages, so their results are sent alone.
            large = [each.message if each.is_outlined else {} for each in self.sent.messages]
            if any(large):
                self._store(large, messages, plan_params["reader"], {}, deadline)
            while True:
                answer = self._plan_batch(plan_params, deadline)
                if answer["status"] == "resync":
                    self.sent.agree(answer["checkpoints"])
                elif self.sent.agreed_count == len(messages):
                    return answer

    def _plan_batch(self, plan_params: Mapping[str, Any], deadline: float) -> dict[str, Any]:
        """Send as many of the messages that memd lacks as fit in a frame, and return its answer.

        Its status is "resync" if memd's copy of the earlier messages differs from this one.
        """
        start, size = self.sent.agreed_count, 0
        batch: list[Message] = []
        for each in islice(self.sent.messages, start, None):
            size += each.size
            if batch and size > _FRAME_BYTES:
                while len(batch) > 1 and batch[-1]["role"] != "assistant":
                    batch.pop()  # memd takes a result at the end of a batch for one not sent yet
                break
            batch.append(each.outline)
        batch_params = {"from": start, "hash": self.sent.hash_at(start), "messages": batch}
        params = {**plan_params, **batch_params}
        answer: dict[str, Any] = self._call("context.plan", params, deadline)
        if answer["status"] == "ok":
            self.sent.agreed_count = start + len(batch)
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
            self._report(deadline)
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

    def _report(self, deadline: float) -> None:
        """Send memd the decisions that the client made without it."""
        while unreported := list(islice(self.sent.unreported, _REPORTED)):
            decisions = [self.sent.decisions[name] for name in unreported]
            self._call("context.restore", {"decisions": decisions}, deadline)
            self.sent.unreported.difference_update(unreported)

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
            self._start_daemon()
            raise

    def _call_once(self, method: str, params: Mapping[str, Any], deadline: float) -> Any:
        """Return the daemon's answer before the monotonic second ``deadline``. Raises MemdError."""
        client = self._client.get(self.new_client)
        return client.call(method, params, max(deadline - time.monotonic(), 0))

    def close(self) -> None:
        """Close the connection unless a call uses it; the next call connects again."""
        if self._lock.acquire(blocking=False):
            self._client.close()
            self._lock.release()

    def _start_daemon(self) -> None:
        """Start a daemon in a thread, only once, for later requests."""
        if self._may_start:
            self._may_start = False
            threading.Thread(target=_start_daemon, daemon=True).start()

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


def _own_places() -> Places:
    """Return the paths of the daemon of this user."""
    return find(os.environ, os.path.expanduser("~"))


def _start_daemon() -> None:
    """Start this user's daemon if it does not run; errors are ignored."""
    with suppress(MemdError, OSError):
        connect(_own_places(), os.environ, name=_NAME).close()
