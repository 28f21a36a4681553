"""The Anthropic SDK's memory tool on memd: a drop-in for its file system helper.

A program changes one line: ``BetaLocalFilesystemMemoryTool(folder)`` becomes
``MemoryTool(folder)`` and ``BetaAsyncLocalFilesystemMemoryTool(folder)`` becomes
``AsyncMemoryTool(folder)``; the folder is then any directory of the project with the memories.
Needs the extra ``anthropic``.

Every command has a request id, so one that is sent again because the connection was lost before
the answer is done once.
"""

import os
import threading
import uuid
from collections.abc import Mapping
from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.types.beta import BetaCacheControlEphemeralParam
from anyio import to_thread

from memd.base.errors import MemdError
from memd.base.places import Places, find
from memd.client.aio import AsyncClient
from memd.client.blocking import Client
from memd.client.errors import DaemonUnavailableError
from memd.client.held import HeldClient
from memd.client.launch import connect

_NAME = "memory-tool"
_ALL_CLEARED = "All memory cleared"


class MemoryTool(BetaAbstractMemoryTool):
    """The memory tool on the memories of the project that has ``folder``.

    ``environ`` has the variables for the daemon's socket and the memory directory (default: the
    process's environment); a daemon is started where none runs. One connection is used; any thread
    may call. Every failure is a ToolError, whose text the model reads.
    """

    def __init__(
        self,
        folder: str = ".",
        *,
        environ: Mapping[str, str] | None = None,
        session: str = "",
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._target = _ToolTarget(folder, environ, session)
        self._client = HeldClient()
        self._lock = threading.Lock()  # held while the connection is used

    def close(self) -> None:
        """Close the connection; the next command connects again."""
        with self._lock:
            self._client.close()

    def _run(self, command: Any) -> str:
        """Run one command of the SDK's tool."""
        return self._run_at_daemon(command.to_dict(mode="json"))

    view = create = str_replace = insert = delete = rename = _run  # the methods that the SDK calls

    def clear_all_memory(self) -> str:
        """Delete every memory of the project; they stay in memd's history."""
        has_more = True
        while has_more:
            listed = self._call("memory.list", {"cwd": self._target.folder})
            for path in _top_paths(listed):
                self._run_at_daemon({"command": "delete", "path": path})
            has_more = bool(listed.get("next"))
        return _ALL_CLEARED

    def _run_at_daemon(self, command: Mapping[str, Any]) -> str:
        """Run one command at the daemon, and return the text for the model."""
        return _text(self._call("memory.tool", self._target.params(command)))

    def _call(self, method: str, params: Mapping[str, Any]) -> Any:
        """Call a method, once more on a new connection if it is lost. Raises ToolError."""
        with self._lock:
            try:
                try:
                    return self._client.get(self._target.connect).call(method, params)
                except DaemonUnavailableError:
                    self._client.close()
                    return self._client.get(self._target.connect).call(method, params)
            except MemdError as error:
                self._client.close()
                raise ToolError(str(error)) from error


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The memory tool for asynchronous programs; the parameters are those of ``MemoryTool``.

    Each command has a connection of its own, so that any number may run at once.
    """

    def __init__(
        self,
        folder: str = ".",
        *,
        environ: Mapping[str, str] | None = None,
        session: str = "",
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._target = _ToolTarget(folder, environ, session)

    async def _run(self, command: Any) -> str:
        """Run one command of the SDK's tool."""
        return await self._run_at_daemon(command.to_dict(mode="json"))

    view = create = str_replace = insert = delete = rename = _run  # the methods that the SDK calls

    async def clear_all_memory(self) -> str:
        """Delete every memory of the project; they stay in memd's history."""
        has_more = True
        while has_more:
            listed = await self._call("memory.list", {"cwd": self._target.folder})
            for path in _top_paths(listed):
                await self._run_at_daemon({"command": "delete", "path": path})
            has_more = bool(listed.get("next"))
        return _ALL_CLEARED

    async def _run_at_daemon(self, command: Mapping[str, Any]) -> str:
        """Run one command at the daemon, and return the text for the model."""
        return _text(await self._call("memory.tool", self._target.params(command)))

    async def _call(self, method: str, params: Mapping[str, Any]) -> Any:
        """Call a method, once more after starting a daemon if none answers. Raises ToolError."""
        try:
            try:
                return await self._call_once(method, params)
            except DaemonUnavailableError:
                started = await to_thread.run_sync(self._target.connect)
                started.close()
                return await self._call_once(method, params)
        except MemdError as error:
            raise ToolError(str(error)) from error

    async def _call_once(self, method: str, params: Mapping[str, Any]) -> Any:
        """Return the daemon's answer over a connection of its own. Raises MemdError."""
        target = self._target
        async with AsyncClient(
            target.places.socket, name=_NAME, environment=target.environ
        ) as client:
            try:
                return await client.call(method, params)
            except MemdError as error:  # leaving the block would wrap it in a group
                failure = error
        raise failure


class _ToolTarget:
    """The daemon that a tool calls, and the project whose memories it works on."""

    def __init__(self, folder: str, environ: Mapping[str, str] | None, session: str) -> None:
        self.environ = dict(os.environ if environ is None else environ)
        self.folder = os.path.abspath(folder)
        self._session = session

    @property
    def places(self) -> Places:
        """The paths of the daemon."""
        return find(self.environ, self.environ.get("HOME") or os.path.expanduser("~"))

    def connect(self) -> Client:
        """Return a connection, after starting a daemon where none runs."""
        return connect(self.places, self.environ, name=_NAME)

    def params(self, command: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of ``memory.tool``, with a new request id."""
        return {
            "cwd": self.folder,
            "command": dict(command),
            "request_id": uuid.uuid4().hex,
            "session_id": self._session or None,
        }


def _text(answer: Mapping[str, Any]) -> str:
    """Return the text of an answer. Raises ToolError with it where it is an error."""
    if answer["is_error"]:
        raise ToolError(str(answer["text"]))
    return str(answer["text"])


def _top_paths(listed: Mapping[str, Any]) -> list[str]:
    """Return the tool's paths of the memories and folders at the top of a memory directory."""
    names = {str(memory["path"]).partition("/")[0] for memory in listed["memories"]}
    return [f"/memories/{name}" for name in sorted(names)]


__all__: list[str] = ["AsyncMemoryTool", "MemoryTool"]
