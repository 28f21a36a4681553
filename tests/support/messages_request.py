"""One request as a scripted Messages server received it, and how it ended."""

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

_KEY_HEADERS = ("authorization", "x-api-key")


@dataclass
class ReceivedMessage:
    """What came over the wire: ``body`` holds the exact bytes, ``headers`` lower-case names.

    ``status`` and ``usage`` tell what was answered, once that is known. ``end_of`` becomes
    ``answered``, ``cut`` (the script closed the connection), ``gone`` (the client did) or
    ``closed`` (the server ended first). ``whole`` is the body with all messages of its thread.
    """

    number: int
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    status: int = 0
    usage: Mapping[str, Any] = field(default_factory=dict)
    end_of: str = ""
    whole: Mapping[str, Any] = field(default_factory=dict, repr=False)
    _ended: threading.Event = field(default_factory=threading.Event, repr=False)

    @cached_property
    def json(self) -> Any:
        """The parsed body; ``None`` where it is no JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    @property
    def route(self) -> str:
        """The path without its query."""
        return self.path.partition("?")[0]

    @property
    def members(self) -> dict[str, Any]:
        """The body's object; empty where it is none."""
        return self.json if isinstance(self.json, dict) else {}

    @property
    def betas(self) -> frozenset[str]:
        """The betas of the request's header."""
        return frozenset(re.findall(r"[^\s,]+", self.headers.get("anthropic-beta", "")))

    @property
    def key(self) -> str:
        """The credential that came along, without its scheme; "" where there was none."""
        for name in _KEY_HEADERS:
            if value := self.headers.get(name, ""):
                return value.removeprefix("Bearer ").strip()
        return ""

    @property
    def last_text(self) -> str:
        """All text of the last message, tool results included."""
        messages = self.members.get("messages") or [{}]
        return "\n".join(_texts(messages[-1].get("content")))

    def end(self, result: str) -> None:
        """Note how it ended; the first ending stands."""
        self.end_of = self.end_of or result
        self._ended.set()

    def wait(self, seconds: float = 60.0) -> str:
        """Return how it ended, "" when it has not after so many seconds. Blocks."""
        self._ended.wait(seconds)
        return self.end_of


def _texts(content: Any) -> list[str]:
    """Return all texts of a content, at any depth."""
    if isinstance(content, str):
        return [content]
    result: list[str] = []
    for block in content if isinstance(content, list) else []:
        if isinstance(block, dict):
            result += [block["text"]] if isinstance(block.get("text"), str) else []
            result += _texts(block.get("content"))
    return result
