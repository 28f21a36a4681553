"""Check the sockets of this user's other memds, and pass messages on to them.

Rules of this file
- A socket must belong to this user alone: its path has no link, and it, its directory and the
  listening process are this user's. It must not be this daemon's own.
- Only the sender of a message waits for another memd: each call has five seconds, and none holds
  the lock of the mailboxes.
- A memd that does not answer is tried again, at growing intervals, until the message expires.
  Without such messages there is no timer.
"""

import os
import re
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
from anyio import to_thread

from memd import __version__
from memd.client.errors import (
    AnswerTimeoutError,
    DaemonUnavailableError,
    RemoteError,
    ServerRefusedError,
)
from memd.client.launch import Client, check_socket
from memd.core.agents import MessageState
from memd.core.clock import Clock
from memd.core.errors import MemdError
from memd.core.text import one_line
from memd.messages.errors import PeerRefusedError
from memd.messages.service import Messages
from memd.messages.values import RelayAnswer, RelayedMessage
from memd.state.database import StateUnusableError
from memd.text.quoting import neutralise

_CALL_SECONDS = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 10.0, 300.0  # seconds between two tries
_LEADS_THROUGH_LINK = "its path leads through a link"
_NOT_LISTED = "its socket is not listed in messages.peers any more"
_OWN_SOCKET = "it is the socket of this memd"
_NOT_UNDERSTOOD = RelayAnswer(reason="its answer was not understood", silent=True)
# What reading an answer of another shape raises.
_MALFORMED_ANSWER = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
_MESSAGE_ID = re.compile("m[0-9]{1,18}")
_LINE_CHARACTERS = 300
_NO_PROJECT = "no_project"
_ROOT = "/"  # used if the other memd lacks the sender's project; NAME@PROJECT needs none


def check_peer(path: str, own: str) -> None:
    """Check a socket before anything is sent to it; a missing one is accepted.

    Raises PeerRefusedError.
    """
    if os.path.realpath(path) != path:
        raise PeerRefusedError(path, _LEADS_THROUGH_LINK)
    with suppress(FileNotFoundError):
        if path == os.path.realpath(own) or os.path.samefile(path, own):
            raise PeerRefusedError(path, _OWN_SOCKET)
    try:
        check_socket(path)
    except ServerRefusedError as error:
        raise PeerRefusedError(path, str(error.facts["cause"])) from error
    except FileNotFoundError:
        return
    except OSError as error:
        raise PeerRefusedError(path, error.strerror or type(error).__name__) from error


def pass_on(message: RelayedMessage, own: str) -> RelayAnswer:
    """Send a message to the memd at its socket, or query its state if it was sent. Blocks."""
    if not message.listed:
        return RelayAnswer(reason=_NOT_LISTED, silent=True)
    try:
        check_peer(message.path, own)
        with Client(
            message.path, name="memd", version=__version__, timeout=_CALL_SECONDS, environment={}
        ) as client:
            return _send_or_query(client, message)
    except RemoteError as error:
        return RelayAnswer(state="" if error.retryable else "refused", reason=_words(error))
    except (AnswerTimeoutError, DaemonUnavailableError) as error:
        return RelayAnswer(reason=str(error), silent=True)
    except MemdError as error:  # the socket has become another's
        return RelayAnswer(state="refused", reason=str(error))
    except _MALFORMED_ANSWER:  # another version, or another program, may say anything
        return _NOT_UNDERSTOOD


def _send_or_query(client: Client, message: RelayedMessage) -> RelayAnswer:
    """Return the other memd's answer to a message, or to a query of a message it knows."""
    if message.known:
        return _check_answer(client.call("message.status", {"id": message.known}))
    params: dict[str, Any] = {
        "cwd": message.root,
        "to": message.to,
        "summary": message.summary,
        "body": message.body,
        "ttl": message.ttl,
        "request_id": message.request_id,
        "hop": message.hop,
    }
    try:
        return _check_answer(client.call("message.send", params))
    except RemoteError as error:
        if error.kind != _NO_PROJECT:
            raise
    return _check_answer(client.call("message.send", params | {"cwd": _ROOT}))


def _check_answer(sent: Any) -> RelayAnswer:
    """Return another memd's answer, checked. Raises one of ``_MALFORMED_ANSWER``."""
    (receiver,) = sent["recipients"]
    state = MessageState(sent["state"])
    message_id = sent["id"]
    if _MESSAGE_ID.fullmatch(message_id) is None:
        raise TypeError
    return RelayAnswer(message_id, state.value, _words(receiver["reason"]))


def _words(text: object) -> str:
    """Return a text of another memd as one short, neutralised line."""
    return neutralise(one_line(str(text), _LINE_CHARACTERS)).encode(errors="replace").decode()


class _PeerCalls:
    """The lock and the one thread for calls of one socket; an abandoned call keeps the thread."""

    def __init__(self) -> None:
        self.lock = anyio.Lock()
        self.thread = anyio.CapacityLimiter(1)


class PeerRelay:
    """Passes on the messages for other memds. ``own`` is the path of this one's socket."""

    def __init__(self, messages: Messages, clock: Clock, own: str) -> None:
        self._messages = messages
        self._clock = clock
        self._own = own
        self._peers: dict[str, _PeerCalls] = {}  # by socket, so that one does not delay another
        self._message_sent = anyio.Event()  # wakes ``run``; replaced for each wait
        relays = messages.relays
        relays.own, relays.check_peer = own, partial(check_peer, own=own)
        relays.pass_on = self.pass_on

    async def run(self) -> None:
        """Retry messages not yet passed on, and query those passed on, until cancelled."""
        pause = _FIRST_PAUSE
        while True:
            self._message_sent = anyio.Event()
            has_messages = True  # also where the state file cannot be read
            with suppress(StateUnusableError):
                has_messages = await self._pass_on_all()
            if has_messages:
                await self._clock.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                await self._message_sent.wait()
                pause = _FIRST_PAUSE

    async def pass_on(self, path: str) -> None:
        """Pass on the messages for one socket now, for five seconds; ``run`` retries the rest."""
        with anyio.move_on_after(_CALL_SECONDS):
            await self._pass_on(path)
        self._message_sent.set()

    async def _pass_on_all(self) -> bool:
        """Pass on all waiting messages; return whether there were any."""
        waiting = await self._messages.run_relay_step(lambda relays, _: relays.waiting())
        async with anyio.create_task_group() as group:
            for path in {message.path for message in waiting}:
                group.start_soon(self._pass_on_quietly, path)
        return bool(waiting)

    async def _pass_on_quietly(self, path: str) -> None:
        """Pass on the messages for a socket; an error of the state file is ignored."""
        with suppress(StateUnusableError):  # then it is tried again
            await self._pass_on(path)

    async def _pass_on(self, path: str) -> None:
        """Pass on the messages for a socket in order, then query the state of those passed on."""
        peer = self._peers.setdefault(path, _PeerCalls())
        async with peer.lock:
            waiting = await self._messages.run_relay_step(lambda relays, _: relays.waiting())
            for_socket = [message for message in waiting if message.path == path]
            # Receivers with a message that is to be retried; "" for all, as the socket is silent.
            blocked_receivers = set[str]()
            for message in sorted(for_socket, key=lambda message: bool(message.known)):
                if blocked_receivers & {"", message.to}:
                    continue  # an earlier message to the same agent is to be retried first
                step = partial(pass_on, message, self._own)
                answer = await to_thread.run_sync(step, abandon_on_cancel=True, limiter=peer.thread)
                if not answer.state:
                    blocked_receivers.add("" if answer.silent else message.to)
                await self._messages.run_relay_step(partial(_apply, message, answer))


def _apply(message: RelayedMessage, answer: RelayAnswer, relays: Any, effects: Any) -> None:
    """Store another memd's answer to a message."""
    relays.apply(message, answer, effects)
