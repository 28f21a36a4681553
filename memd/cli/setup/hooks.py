"""memd's hooks as a client's configuration names them: one command for each event."""

import re
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

_DEADLINE = "MEMD_HOOK_DEADLINE_MS"
_WAITS = re.compile(rf"\b{_DEADLINE}=([0-9]{{1,5}}) ")
# The hook in its own place, and in the package, where the settings of older versions name it.
_OURS = ("memd/hook.py", "memd/cli/hook.py")
MESSAGES, RULES = "messages", "rules"  # what hooks may do besides
# Seconds after which a client gives a hook up; the hook itself gives up earlier.
TIMEOUT = 3


class Hooks(Struct, frozen=True):
    """The hooks of one client; ``file`` is the absolute path of the hook file.

    ``events`` are the client's names, with a matcher where only some cases of one count; ``prompt``
    is the one at which a person waits. ``milliseconds``: the client's time limits are in these.
    ``more`` are the events that there are besides, or with a wider matcher, for messages of other
    agents, and those before a tool runs, for rules. ``messages`` has the hook deliver messages.
    """

    client: str
    file: str
    events: Mapping[str, str | None]
    prompt: str = "UserPromptSubmit"
    milliseconds: bool = False
    more: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    messages: bool = False

    def doing(self, extra: str) -> "Hooks":
        """Return the same hooks, which deliver messages, or ask before a tool runs, as well."""
        events = {**self.events, **self.more.get(extra, {})}
        return replace(self, events=events, messages=self.messages or extra == MESSAGES)

    def group(self, event: str, wait: int = 0) -> dict[str, Any]:
        """Return what stands in the list of an event.

        ``wait`` is what the hook gives a prompt in ms, 0 for the usual time.
        """
        matcher = self.events[event]
        group: dict[str, Any] = {} if matcher is None else {"matcher": matcher}
        command = self._command(event, wait if event == self.prompt else 0)
        timeout = TIMEOUT * 1000 if self.milliseconds else TIMEOUT
        return group | {"hooks": [{"type": "command", "command": command, "timeout": timeout}]}

    def _command(self, event: str, wait: int) -> str:
        """Return the command that a shell runs.

        It ends with 0 in silence whatever is missing: Python ends with 2 for a missing script, a
        shell with 2 where it cannot fork or redirect, and 2 blocks a prompt.
        """
        # Without the interpreter another one says in the log how to remove the hook; macOS has a
        # python3 that asks its user to install one.
        other = "exit 0" if sys.platform == "darwin" else "p=python3"
        deadline = f"{_DEADLINE}={wait} " if wait else ""
        words = f"{event} {MESSAGES}" if self.messages else event
        command = (
            f"trap 'exit 0' 0; exec 2>/dev/null; h={shlex.quote(self.file)}; p=${{h%hook.py}}python"
            f'; [ -x "$p" ] || {other}; {deadline}"$p" -I -S "$h" {self.client} {words}; exit 0'
        )
        # Codex asks the person's own shell, which need not be one that knows this language.
        return f"/bin/sh -c {shlex.quote(command)}" if self.client == "codex" else command


def is_ours(item: object) -> bool:
    """Return whether an item of a list of hooks runs memd's hook."""
    if not isinstance(item, dict):
        return False
    args = item.get("args")
    words = [item.get("command"), *(args if isinstance(args, list) else [])]
    return any(isinstance(word, str) and any(ours in word for ours in _OURS) for word in words)


def deadline(item: Mapping[str, Any]) -> int:
    """Return what a hook of ours gives a prompt in ms, 0 for the usual time."""
    match = _WAITS.search(str(item.get("command", "")))
    return int(match[1]) if match else 0


def delivers(item: Mapping[str, Any]) -> bool:
    """Return whether a hook of ours delivers messages."""
    return f" {MESSAGES}; exit 0" in str(item.get("command", ""))
