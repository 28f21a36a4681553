"""Check what a model writes: allowed names, valid memories, no hidden characters. Pure.

Each change is checked when it is made, so that the model learns why it is refused and can mend it.
The store checks the files once more when they are committed.
"""

import re

from memd.agent.places import MEMORY, Place
from memd.agent.refusals import ChangeRefusedError
from memd.base import limits
from memd.base.errors import Invalid, Refused, Secret
from memd.base.names import INDEX, TEAM, check_name, in_catalogue
from memd.base.text import decode
from memd.base.values import MemoryType
from memd.store.check import check_secrets, check_shared
from memd.store.memory import parse, validate, with_standard_head
from memd.text import invisible

TRUSTED = frozenset({"user", "assistant"})  # whose words alone may become a rule for the assistant
_COMMENT = "<!--"
_REMOVAL = r"(?i)\s*removed:[ \t]*(\S[^\n]{2,500})\s*"

_OUTSIDE = "only files of the memory directory are written"
_FROM_TEAM = "team memories come from the team"
_NO_MEMORY = "it is not the name of a memory"
_DAMAGED = "its frontmatter does not parse, and a person has to look at it"
_HAS_COMMENT = "it has a comment (<!--), which a reader would not see"
_HALF_CHARACTER = "it has half a character"
_NOT_THE_USERS_RULE = (
    "a feedback memory is a rule for the assistant and needs the user's own word; "
    "what this run has read comes from elsewhere"
)
_INDEX_SIZE = f"an index has at most {limits.INDEX_BYTES} bytes and {limits.INDEX_LINES} lines"


def name_of(path: str, place: Place, *, team: bool) -> str:
    """Return the name, within the memory directory, of the file that a model may write at a path.

    The rule for names is applied to the path as the model wrote it, without its root. Team
    memories need ``team``. Raises ChangeRefusedError.
    """
    if place.root.kind != MEMORY:
        raise ChangeRefusedError(path, _OUTSIDE)
    name = path
    for root_path in (place.root.path, place.root.real):
        name = name.removeprefix(f"{root_path}/")
    try:
        check_name(name, index=True)
    except Refused as error:
        raise ChangeRefusedError(path, error.sentence) from error
    # On some systems a folder whose name differs in case alone is the team's.
    is_below_team = f"{name}/".casefold().startswith(TEAM)
    is_allowed_team_name = team and name.startswith(TEAM)
    if is_below_team and not is_allowed_team_name:
        raise ChangeRefusedError(path, _FROM_TEAM)
    if name != INDEX and not in_catalogue(name):
        raise ChangeRefusedError(path, _NO_MEMORY)
    return name


def removal(text: str) -> str:
    """Return the reason in a text that is only ``removed: REASON``, or "" for any other text."""
    match = re.fullmatch(_REMOVAL, text)
    return match.group(1).strip() if match else ""


def checked_content(name: str, before: bytes | None, text: str, origin: str) -> bytes:
    """Return the bytes of a memory or an index that a model may write.

    ``before`` is the content that the run had read, ``None`` for a new file. ``origin`` says whose
    words the run works on. Raises ChangeRefusedError.
    """
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ChangeRefusedError(name, _HALF_CHARACTER) from error
    if name != INDEX:
        content = with_standard_head(content, before, name)
    if len(content) > limits.MEMORY_BYTES:
        why = f"it has {len(content)} bytes of {limits.MEMORY_BYTES}"
        raise ChangeRefusedError(name, why)
    # What the memory had before may stay.
    old_text = decode(before or b"")
    hidden = invisible.find(text)
    if hidden and hidden not in {invisible.find(line) for line in old_text.split("\n")}:
        why = f"it has the character {hidden}, which a reader would not see"
        raise ChangeRefusedError(name, why)
    if text.count(_COMMENT) > old_text.count(_COMMENT):
        raise ChangeRefusedError(name, _HAS_COMMENT)
    try:
        check_shared(name, content)
        check_secrets(name, before, content)
    except (Invalid, Secret) as error:
        raise ChangeRefusedError(name, error.sentence) from error
    if name == INDEX:
        _check_index(before, content)
    else:
        _check_memory(name, before, content, origin)
    return content


def _check_index(before: bytes | None, content: bytes) -> None:
    """Refuse an index over its size limits, unless it is smaller than before."""
    too_long = len(content) > limits.INDEX_BYTES or content.count(b"\n") > limits.INDEX_LINES
    if too_long and len(content) >= len(before or b""):
        raise ChangeRefusedError(INDEX, _INDEX_SIZE)


def _check_memory(name: str, before: bytes | None, content: bytes, origin: str) -> None:
    """Refuse a memory that is not valid, and a rule whose words are not the person's."""
    if before is not None and parse(before, name).damaged:
        raise ChangeRefusedError(name, _DAMAGED)
    try:
        memory = validate(content, name)
    except Invalid as error:
        raise ChangeRefusedError(name, error.sentence) from error
    if memory.type is MemoryType.FEEDBACK and origin not in TRUSTED:
        raise ChangeRefusedError(name, _NOT_THE_USERS_RULE)
