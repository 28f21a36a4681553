"""Redact reports: numbers and memd's own words stay, all other texts become hashes.

Rules of this file
- Only memd's own words, versions and times stay. Any other text becomes a short hash made with a
  key that never leaves this machine: equal texts have equal hashes, and nobody without the key can
  find a text by guessing (tests/promises/test_bundle.py).
- A traceback keeps memd's own files, lines and functions, and the class of the error if it is
  Python's or memd's. The error's message is dropped.
"""

import builtins
import hmac
import os
import re
from collections.abc import Mapping
from typing import Any

import memd
from memd.cli.arguments import COMMANDS
from memd.cli.operation_table import CLIENTS
from memd.core.events import LOG_EVENTS, LOG_LEVELS
from memd.core.text import read_object

_KINDS = ("recall", "extract", "dream", "notes", "compact", "progress")
_STATES = ("ok", "warning", "failed", "queued", "running", "completed", "killed", "parked")
WORDS = frozenset(
    (
        *LOG_EVENTS,
        *LOG_LEVELS,
        *CLIENTS,
        *_KINDS,
        *_STATES,
        "memd",
        "memctl",
        "hook",
        "mcp",
        "other",
    )
) | {command.api_method for command in COMMANDS if command.api_method}
_MEMBER_NAME = re.compile(r"[a-z][a-z_]{0,30}")
_VERSION = re.compile(r"\d{1,4}(\.\d{1,5}){1,2}((a|b|rc|\.dev|\.post)\d{1,5})?")
_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d:\d\d(\.\d{1,9})?(Z|\+00:00)?)?")
# In a traceback: a line of code in memd's program, and the line with the error's class.
_FRAME = re.compile(r'File "[^"]{0,500}/memd/((?:\w+/)*\w+\.py)", line (\d{1,6}), in (\w{1,80})')
_ERROR_CLASS = re.compile(r"^(?:\s*\|?\s*)((?:memd[\w.]*\.)?)(\w{1,80})(?=:|$)")
_PROGRAM_FOLDER = os.path.dirname(memd.__file__)


class Redactor:
    """Replaces a person's texts by hashes made with ``key``."""

    def __init__(self, key: bytes) -> None:
        self._key = key  # of the hashes; it never leaves this machine

    def value(self, value: Any) -> Any:
        """Return a JSON value with every text of a person replaced by a hash."""
        if isinstance(value, Mapping):
            return {self._member_name(name): self.value(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        return self.text(value) if isinstance(value, str) else value

    def text(self, text: str) -> str:
        """Return memd's own words, versions and times as they are, any other text as a hash."""
        if not text or text in WORDS or _VERSION.fullmatch(text) or _TIME.fullmatch(text):
            return text
        digest = hmac.digest(self._key, text.encode(errors="replace"), "sha256").hex()[:8]
        kind = "path" if text.startswith("/") else "text"
        return f"{kind}-{digest}"

    def log_line(self, line: str) -> dict[str, Any]:
        """Return the redacted facts of a line of the daemon's log."""
        facts = read_object(line)
        if facts.get("event") not in LOG_EVENTS:  # not an event: maybe a line of a traceback
            places = trace(line)
            return {"trace": places} if places else {"text": self.text(line)}
        traceback = facts.pop("traceback", "")
        places = trace(traceback) if isinstance(traceback, str) else []
        redacted: dict[str, Any] = self.value(facts)
        if places:
            redacted["trace"] = places
        return redacted

    def _member_name(self, name: str) -> str:
        """Return a member's name, as a hash unless it looks like memd's own."""
        return name if _MEMBER_NAME.fullmatch(name) or name in WORDS else self.text(name)


def trace(text: str) -> list[str]:
    """Return memd's own code lines in a traceback, in order, and the class of the error."""
    result = []
    for line in text.splitlines():
        if match := _FRAME.search(line):
            path, number, function = match.groups()
            # A line in the log may look like a traceback, so only places in memd's own source stay.
            if _source_has(path, f"def {function}("):
                result.append(f"memd/{path}:{number} {function}")
        elif match := _ERROR_CLASS.match(line):
            prefix, name = match.groups()
            module = prefix.strip(".").removeprefix("memd").strip(".")
            path = f"{module.replace('.', '/')}.py"
            is_memd_class = prefix and _source_has(path, f"class {name}(")
            if is_memd_class or (not prefix and _is_builtin_error(name)):
                result.append(f"{prefix}{name}")
    return result


def _is_builtin_error(name: str) -> bool:
    """Return whether a name is that of an error class of Python."""
    kind = getattr(builtins, name, None)
    return isinstance(kind, type) and issubclass(kind, BaseException)


def _source_has(path: str, text: str) -> bool:
    """Return whether memd's program has a file at this path with this text."""
    full_path = f"{_PROGRAM_FOLDER}/{path}"
    if not os.path.isfile(full_path):
        return False
    with open(full_path, encoding="utf-8") as file:
        return text in file.read()
