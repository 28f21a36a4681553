"""The command lines with which a client's configuration runs memd's hook, one for each event.

Rules of this file
- Which events a client has, and what they mean, is in ``base.client_events``.
- A line begins with ``: memd;``, since clients list hooks by the beginning of their lines.
- It ends with 0 and prints nothing whatever is missing. Status 2 would block a prompt, and Python
  ends with 2 for a missing script, a shell where it cannot fork or redirect. What a program prints
  that then fails is not printed.
- A line is memd's if it names memd's hook file, also where an older memd wrote it.
"""

import re
import shlex
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from memd.base.client_events import EVENTS, EventKind

# What a set-up may have besides: messages of agents, rules asked before each tool, and how many
# milliseconds a hook may keep a prompt waiting (0 for the usual time).
MESSAGES, RULES, WAIT = "messages", "rules", "wait"
_TIMEOUT = 3  # seconds after which a client stops a hook; the hook itself gives up earlier
_DEADLINE = re.compile(r"\bMEMD_HOOK_DEADLINE_MS=([0-9]{1,5}) ")
_WITH_MESSAGES = re.compile(rf'"\$h" \S+ \S+ {MESSAGES}\b')
# Where the hook file is now, and where older versions had it: in the package.
_HOOK_FILES = ("memd/hook.py", "memd/cli/hook.py")
_RULE_EVENTS = ("PreToolUse", "BeforeTool")

Extras = Mapping[str, int]  # MESSAGES, RULES and WAIT, each with a truth value or number


class Hooks(NamedTuple):
    """The hooks of one client; ``file`` is the absolute path of the hook file.

    ``matchers`` has a regex of tools or causes for kinds of events that are not heard of all.
    ``subagents`` says that starts of sub-agents are heard of without messages too, ``milliseconds``
    that the client's time limits are in ms, not s.
    """

    client: str
    file: str
    matchers: Mapping[EventKind, str]
    subagents: bool = False
    milliseconds: bool = False

    def groups(self, extras: Extras) -> dict[str, dict[str, Any]]:
        """Return the entry of each event's list in the client's configuration."""
        groups = {}
        for name, kind in EVENTS[self.client].items():
            event, _, trigger = name.partition(" ")
            if self._is_heard(kind, extras):
                matcher = trigger or self.matchers.get(kind)
                if kind is EventKind.TOOL_USED and extras.get(MESSAGES):
                    matcher = None  # a message may come behind any tool
                group = {"matcher": matcher} if matcher else {}
                groups[event] = {**group, "hooks": [self._item(event, kind, extras)]}
        return groups

    def _is_heard(self, kind: EventKind, extras: Extras) -> bool:
        """Return whether the set-up has a hook for a kind of event."""
        messages = bool(extras.get(MESSAGES))
        optional = {
            EventKind.TOOL_ASKED: bool(extras.get(RULES)),
            EventKind.SUBAGENT_START: messages or self.subagents,
            EventKind.SUBAGENT_END: messages,
        }
        return optional.get(kind, True)

    def _item(self, event: str, kind: EventKind, extras: Extras) -> dict[str, Any]:
        """Return the hook of an event, with the shell command that runs memd's hook file."""
        # If memd's interpreter is gone, the system's python3 logs how to remove the hook. Not on
        # macOS: there python3 may open a dialog that offers to install it.
        fallback = "exit 0" if sys.platform == "darwin" else "p=python3"
        wait = extras.get(WAIT) if kind is EventKind.PROMPT else 0
        deadline = f"MEMD_HOOK_DEADLINE_MS={wait} " if wait else ""
        words = f"{event} {MESSAGES}" if extras.get(MESSAGES) else event
        command = (
            f"trap 'exit 0' 0; exec 2>/dev/null; h={shlex.quote(self.file)}; p=${{h%hook.py}}python"
            f'; [ -x "$p" ] || {fallback}; o=$({deadline}"$p" -I -S "$h" {self.client} {words})'
            ' && printf %s "$o"; exit 0'
        )
        if self.client == "codex":  # it runs lines in the login shell, perhaps fish
            command = f"exec /bin/sh -c {shlex.quote(command)}"
        timeout = _TIMEOUT * 1000 if self.milliseconds else _TIMEOUT
        return {"type": "command", "command": f": memd; {command}", "timeout": timeout}


def is_ours(item: object) -> bool:
    """Return whether an item in a client's list of hooks runs memd's hook."""
    if not isinstance(item, dict):
        return False
    args = item.get("args")
    words = [item.get("command"), *(args if isinstance(args, list) else [])]
    texts = [word for word in words if isinstance(word, str)]
    return any(file in text for text in texts for file in _HOOK_FILES)


def extras_of(groups: Mapping[str, list[Any]]) -> dict[str, int]:
    """Return the extras of memd's hooks in a file, given as lists of groups by event."""
    commands = [
        str(item.get("command", ""))
        for event_groups in groups.values()
        for group in event_groups
        for item in group["hooks"]
    ]
    waits = [int(match[1]) for match in map(_DEADLINE.search, commands) if match]
    return {
        MESSAGES: any(map(_WITH_MESSAGES.search, commands)),
        RULES: not {*_RULE_EVENTS}.isdisjoint(groups),
        WAIT: max(waits, default=0),
    }
