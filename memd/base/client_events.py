"""The names that clients have for the events of a conversation: what set-up writes, hooks send."""

from collections.abc import Mapping
from enum import Enum, auto


class EventKind(Enum):
    """What happens in a conversation, whatever the client calls it."""

    SESSION_START = auto()
    PROMPT = auto()
    TURN_END = auto()
    COMPACTING = auto()
    COMPACTED = auto()
    SESSION_END = auto()
    TOOL_USED = auto()
    SUBAGENT_START = auto()
    SUBAGENT_END = auto()
    TOOL_ASKED = auto()


_SHARED_EVENTS = {  # of Claude Code and Codex
    "SessionStart": EventKind.SESSION_START,
    "UserPromptSubmit": EventKind.PROMPT,
    "Stop": EventKind.TURN_END,
    "PreCompact": EventKind.COMPACTING,
    "SessionEnd": EventKind.SESSION_END,
    "PostToolUse": EventKind.TOOL_USED,
    "PreToolUse": EventKind.TOOL_ASKED,
}
# By client; a name is followed by a trigger where only that one counts.
EVENTS: Mapping[str, Mapping[str, EventKind]] = {
    "claude-code": {
        **_SHARED_EVENTS,
        "SubagentStart": EventKind.SUBAGENT_START,
        "SubagentStop": EventKind.SUBAGENT_END,
    },
    "codex": {**_SHARED_EVENTS, "PostCompact": EventKind.COMPACTED},
    "gemini": {
        "SessionStart": EventKind.SESSION_START,
        "BeforeAgent": EventKind.PROMPT,
        "AfterAgent": EventKind.TURN_END,
        "PreCompress manual": EventKind.COMPACTED,
        "SessionEnd": EventKind.SESSION_END,
        "AfterTool": EventKind.TOOL_USED,
        "BeforeTool": EventKind.TOOL_ASKED,
    },
    "opencode": {"chat.message": EventKind.PROMPT},  # its plugin calls the other methods
}
