"""The commands with which a client's configuration runs memd's hook, one for each event."""

import re
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

_DEADLINE_VARIABLE = "MEMD_HOOK_DEADLINE_MS"
_DEADLINE_IN_COMMAND = re.compile(rf"\b{_DEADLINE_VARIABLE}=([0-9]{{1,5}}) ")
# Where the hook file is now, and where older versions had it: in the package.
_HOOK_FILES = ("memd/hook.py", "memd/cli/hook.py")
MESSAGES, RULES = (
    "messages",
    "rules",
)  # optional duties of hooks; ``Hooks.duty_events`` has their events
# Seconds after which a client stops a hook; the hook itself gives up earlier.
TIMEOUT = 3


class Hooks(Struct, frozen=True):
    """The hooks of one client; ``file`` is the absolute path of the hook file.

    ``events`` maps the client's event names to a matcher, a regex for tool names or sources, or
    ``None`` for all. ``prompt`` is the event for which a person waits. ``milliseconds`` says that
    the client's time limits are in ms, not s. ``duty_events`` has further events, or wider
    matchers, for the duties MESSAGES (deliver messages of agents) and RULES (ask before a tool
    runs). ``messages`` says whether the hook delivers messages.
    """

    client: str
    file: str
    events: Mapping[str, str | None]
    prompt: str = "UserPromptSubmit"
    milliseconds: bool = False
    duty_events: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    messages: bool = False

    def with_duty(self, duty: str) -> "Hooks":
        """Return the same hooks with one more duty: MESSAGES or RULES."""
        events = {**self.events, **self.duty_events.get(duty, {})}
        return replace(self, events=events, messages=self.messages or duty == MESSAGES)

    def group(self, event: str, wait: int = 0) -> dict[str, Any]:
        """Return the entry for an event's list in the client's configuration.

        ``wait`` is how long the hook may keep a prompt waiting in ms, 0 for the usual time.
        """
        matcher = self.events[event]
        group: dict[str, Any] = {} if matcher is None else {"matcher": matcher}
        command = self._command(event, wait if event == self.prompt else 0)
        timeout = TIMEOUT * 1000 if self.milliseconds else TIMEOUT
        return group | {"hooks": [{"type": "command", "command": command, "timeout": timeout}]}

    def _command(self, event: str, wait: int) -> str:
        """Return the shell command that runs the hook for an event.

        It exits with 0 and prints nothing whatever is missing. Status 2 would block a prompt, and
        Python exits with 2 for a missing script, a shell if it cannot fork or redirect.
        """
        # If memd's interpreter is gone, the system's python3 logs how to remove the hook. Not on
        # macOS: there python3 may open a dialog that offers to install it.
        fallback = "exit 0" if sys.platform == "darwin" else "p=python3"
        deadline = f"{_DEADLINE_VARIABLE}={wait} " if wait else ""
        args = f"{event} {MESSAGES}" if self.messages else event
        command = (
            f"trap 'exit 0' 0; exec 2>/dev/null; h={shlex.quote(self.file)}; p=${{h%hook.py}}python"
            f'; [ -x "$p" ] || {fallback}; {deadline}"$p" -I -S "$h" {self.client} {args}; exit 0'
        )
        # Codex runs commands in the login shell, which may not understand this syntax (fish).
        return f"/bin/sh -c {shlex.quote(command)}" if self.client == "codex" else command


def is_ours(item: object) -> bool:
    """Return whether an item in a client's list of hooks runs memd's hook."""
    if not isinstance(item, dict):
        return False
    args = item.get("args")
    words = [item.get("command"), *(args if isinstance(args, list) else [])]
    texts = [word for word in words if isinstance(word, str)]
    return any(file in text for text in texts for file in _HOOK_FILES)


def deadline_ms(item: Mapping[str, Any]) -> int:
    """Return how long memd's hook ``item`` may keep a prompt waiting in ms, 0 for the default."""
    match = _DEADLINE_IN_COMMAND.search(str(item.get("command", "")))
    return int(match[1]) if match else 0


def delivers_messages(item: Mapping[str, Any]) -> bool:
    """Return whether memd's hook ``item`` delivers messages of other agents."""
    return f" {MESSAGES}; exit 0" in str(item.get("command", ""))
