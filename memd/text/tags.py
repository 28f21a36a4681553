"""Cut memd's and clients' insertions out of a conversation, so that memd learns from users only.

memd puts all that it inserts between ``OPEN`` and ``CLOSE``. Before extraction this is cut out, and
so are the reminders that a client puts among the user's words. What the user typed behind memd's
"remember" command stays.
"""

import re

MEMD_TAG = "memd-context"
OPEN = f"<{MEMD_TAG}>"
CLOSE = f"</{MEMD_TAG}>"
NOT_THE_USER = "not from the user:"  # the end of the label of each message
MESSAGES = "Messages of other agents, quoted."  # the beginning of an insertion with messages

# Clients' own insertions among the user's words (observed in transcripts).
_FOREIGN = (
    "system-reminder",
    "command-name",
    "command-message",
    "command-args",
    "command-contents",
    "local-command-stdout",
    "local-command-stderr",
    "local-command-caveat",
    "bash-input",
    "bash-stdout",
    "bash-stderr",
    "user-prompt-submit-hook",
    "hook_context",  # Gemini CLI's
    "task-notification",
    "ide_selection",
    "ide_opened_file",
    "session_context",
)
# What the person types behind the command of memd's plugin (clients/claude-code) are their words.
_REMEMBER = (
    r"(?s)<command-message>memd:remember</command-message>\s*"
    r"<command-name>/memd:remember</command-name>\s*<command-args>(.*)</command-args>\s*"
)
_CUT_ROUNDS = 3  # rounds: two pieces around a cut may make a new mark
_ARGUMENTS = r"</?command-args>"
_KINDS = "|".join((MEMD_TAG, *_FOREIGN))
_OPENING = rf"(?i)<({_KINDS})(?:\s[^<>]*)?>"
_OWN_OPENING = rf"(?i)<({MEMD_TAG})(?:\s[^<>]*)?>"
_MARK = rf"(?i)<(/?)({_KINDS})(?:\s[^<>]*)?>"


def strip_own(text: str) -> str:
    """Return a text without memd's insertions; those of clients stay."""
    return _until_none(text, _OWN_OPENING)


def messages_in(text: str) -> str:
    """Return the messages of other agents in memd's insertions, without their labels."""
    if MESSAGES not in text:
        return ""
    lines: list[str] = []
    position = 0
    openings = re.compile(_OWN_OPENING)
    while (opening := openings.search(text, position)) is not None:
        end = _offset_behind_end(text, MEMD_TAG, opening.end())
        position = len(text) if end < 0 else end
        insertion = text[opening.end() : position]
        under_label = False  # memories may follow in the same insertion
        for line in insertion.partition(MESSAGES)[2].split("\n"):
            under_label = line.endswith(NOT_THE_USER) or (under_label and bool(line))
            if under_label and line.startswith(">"):
                lines.append(line[1:].strip())
    return "\n".join(lines)


def strip(text: str) -> str:
    """Return a text without memd's and the client's insertions.

    An insertion that is never closed reaches to the end: the rest may be memd's own words. One
    that holds another of its kind ends with the outer one.
    """
    command = re.fullmatch(_REMEMBER, text)
    return _until_none(command[1] if command else text, _OPENING)


def strip_closed(text: str) -> str:
    """Return a text without closed insertions, for everything that the user may have written.

    What follows an insertion without an end stays, and so do the arguments of commands.
    """
    return _without(re.sub(_ARGUMENTS, "", text), _OPENING, closed=True)


def _until_none(text: str, openings: str) -> str:
    """Return a text without insertions, also without those that a cut has joined from two pieces.

    Only planted text still has one after ``_CUT_ROUNDS`` rounds; then the rest is left out.
    """
    for _ in range(_CUT_ROUNDS):
        if re.search(openings, text) is None:
            return text
        text = _without(text, openings)
    return re.split(openings, text, maxsplit=1)[0]


def _without(text: str, openings: str, *, closed: bool = False) -> str:
    """Return a text without the insertions that begin with ``openings``.

    With ``closed`` the text behind an insertion without an end stays.
    """
    parts: list[str] = []
    position = 0
    pattern = re.compile(openings)
    while (opening := pattern.search(text, position)) is not None:
        parts.append(text[position : opening.start()])
        position = _offset_behind_end(text, opening.group(1).lower(), opening.end())
        if position < 0:  # the insertion has no end
            rest = text[opening.start() :] if closed else ""
            return "".join([*parts, rest])
    parts.append(text[position:])
    return "".join(parts)


def _offset_behind_end(text: str, tag: str, start: int) -> int:
    """Return the offset behind the tag that closes an insertion, -1 if there is none."""
    depth = 1
    for mark in re.compile(_MARK).finditer(text, start):
        if mark.group(2).lower() == tag:
            depth += -1 if mark.group(1) else 1
            if depth == 0:
                return mark.end()
    return -1
