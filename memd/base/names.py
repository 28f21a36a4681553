"""The names a memory may have: a strict rule for names from outside, a lenient one for files.

Rules of this file
- A name that a client, an agent or a team server sends is ASCII, relative, and has few components
  without special characters. A name that a decoder, a look-alike or another file system could read
  as something else is refused before any file system is asked.
- A name that a person already gave to a file may be anything; ``in_catalogue`` only says whether
  that file is a memory.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator

from memd.base import limits
from memd.base.errors import Refused

INDEX = "MEMORY.md"
LOGS = "logs"  # daily logs, top level only
SUFFIX = ".md"
TEAM = "team/"  # the folder of what others write, with an index of its own
TEAM_INDEX = f"{TEAM}{INDEX}"
INDEXES = (INDEX, TEAM_INDEX)
_COMPONENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
# Windows opens the device whatever follows the first dot.
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])", re.IGNORECASE)
_SHOWN_CHARACTERS = 120  # of a name in a sentence
_FEW_NAMES = 50  # are searched for in all others as one text, which is quicker
_DECODINGS = 8  # attacks nest percent-encodings two or three deep; this bounds the work

# Why something is refused, in words for the sentence of its error.
_EMPTY = "it is empty"
_TOO_LONG = f"it is longer than {limits.NAME_BYTES} bytes"
_NO_MARKDOWN = "it does not end in .md"
_IS_THE_INDEX = "the index is kept by memd itself"
_HIDDEN = "a part of it starts with a dot or a dash"
_DOTS = "a part of it has two dots in a row or ends with a dot"
_IS_A_DEVICE = "it is the name of a device on some systems"
_ABSOLUTE = "it is absolute"
_EMPTY_PART = "a part of it is empty"
_TOO_DEEP = f"it has more than {limits.NAME_COMPONENTS} parts"
_MISLEADS = "it can be read as a path that leads elsewhere"
_CONTROL_CHARACTER = "it has a control character"
_NO_MEMORY = "no memory has such a name"
_FORBIDDEN_CHARACTER = "only ASCII letters, digits, '.', '_' and '-' may stand in it"


def name_refused(name: str, rule: str) -> Refused:
    """Return the error that a name breaks the rule for names that come from outside."""
    shown = printable(name)
    return Refused(
        f"the name {shown} is refused: {rule}",
        kind="name_refused",
        hint="names have letters, digits, '.', '_' and '-', at most four parts, and end in .md",
        name=shown,
        rule=rule,
    )


def printable(name: str, limit: int = _SHOWN_CHARACTERS) -> str:
    """Return a name that is safe to show: cut to ``limit`` characters, unprintable ones escaped."""
    shown = name if len(name) <= limit else name[:limit] + "…"
    return "".join(_escaped(character) for character in shown)


def check_name(name: str, *, index: bool = False) -> str:
    """Return the name of a memory when the strict rule allows it.

    With ``index`` an index file's name passes as well. Raises Refused.
    """
    if not name:
        raise name_refused(name, _EMPTY)
    if len(name.encode("utf-8", errors="surrogatepass")) > limits.NAME_BYTES:
        raise name_refused(name, _TOO_LONG)
    if name.startswith("/"):
        raise name_refused(name, _ABSOLUTE)
    parts = name.split("/")
    if "" in parts:
        raise name_refused(name, _EMPTY_PART)
    if len(parts) > limits.NAME_COMPONENTS:
        raise name_refused(name, _TOO_DEEP)
    for part in parts:
        check_component(part, name)
    if not name.endswith(SUFFIX):
        raise name_refused(name, _NO_MARKDOWN)
    # On some systems a name that differs in case alone is the index.
    *folders, last = parts
    if any(folder.casefold() == INDEX.casefold() for folder in folders):
        raise name_refused(name, _IS_THE_INDEX)
    is_allowed_index = index and last == INDEX
    if last.casefold() == INDEX.casefold() and not is_allowed_index:
        raise name_refused(name, _IS_THE_INDEX)
    return name


def check_odd_name(name: str) -> str:
    """Return the name of a memory from an archive, which a person may have chosen.

    Every name that a memory's file may have is allowed, unless it can be read as another path.
    Raises Refused.
    """
    if not in_catalogue(name) and name not in INDEXES:
        raise name_refused(name, _NO_MEMORY)
    for part in name.split("/"):
        reason = _reason_misleading(part)
        if part in ("", ".", ".."):
            reason = reason or _MISLEADS
        if reason:
            raise name_refused(name, reason)
    return name


def check_stored_name(name: str, *, index: bool = False) -> str:
    """Return the name of a memory that may be on the disk or in the history already.

    A person may have given it to the file, so every name of an archive is allowed here too. With
    ``index`` an index file's name passes as well. Raises Refused.
    """
    return check_name(name, index=index) if name in INDEXES else check_odd_name(name)


def check_component(part: str, name: str | None = None) -> str:
    """Return one component of a name when the strict rule allows it.

    ``name`` is the full name, for the error. Raises Refused.
    """
    full_name = part if name is None else name
    if len(part) > limits.NAME_COMPONENT_CHARACTERS:
        rule = f"a part of it is longer than {limits.NAME_COMPONENT_CHARACTERS} characters"
        raise name_refused(full_name, rule)
    if part.startswith((".", "-")):
        raise name_refused(full_name, _HIDDEN)
    if not _COMPONENT.fullmatch(part):
        raise name_refused(full_name, _reason_forbidden(part))
    if ".." in part or part.endswith("."):
        raise name_refused(full_name, _DOTS)
    if _DEVICE.fullmatch(part.split(".", 1)[0]):
        raise name_refused(full_name, _IS_A_DEVICE)
    return part


def clash(names: Iterable[str], existing: Iterable[str]) -> tuple[str, str] | None:
    """Return one of the names and an existing one that differ in case alone, ``None`` for none.

    They may differ in their own case or in that of a folder: two such names are one file on some
    systems. The names may be among the existing ones.
    """
    # By case-folded folder or name: each of its spellings, and the first name that has it.
    spellings: dict[str, dict[str, str]] = {}
    for name in names:
        for beginning in beginnings(name):
            spellings.setdefault(beginning.casefold(), {}).setdefault(beginning, name)
    others = list(existing)
    if len(spellings) <= _FEW_NAMES:
        text = "\0".join(("", *others))
        folded = text.casefold()
        # Where all that begins like a name in folded case begins like it as it is, nothing clashes.
        if all(
            folded.count(f"\0{key}") == text.count(f"\0{spelling}")
            for key, each in spellings.items()
            for spelling in each
        ):
            return None
    for other in others:
        for beginning in beginnings(other):
            for spelling, name in spellings.get(beginning.casefold(), {}).items():
                if spelling != beginning:
                    return name, other
    return None


def in_catalogue(path: str) -> bool:
    """Say whether an existing file of this relative path is a memory.

    It is one when it ends in ``.md``, neither it nor a folder above is hidden, it is not an index
    and not a daily log. A path that is not Unicode text cannot be sent to a client, so it is none.
    """
    if not path.endswith(SUFFIX) or path.startswith(f"{LOGS}/"):
        return False
    rooted = f"/{path}"
    if "/." in rooted or "//" in rooted or rooted.endswith(f"/{INDEX}"):
        return False
    return path.isascii() or is_text(path)


def concerns(path: str) -> bool:
    """Say whether a file of this relative path is a memory or an index."""
    return path in INDEXES or in_catalogue(path)


def is_temporary(name: str) -> bool:
    """Say whether a name is one of memd's own temporary files."""
    return name.startswith(".memd-") and name.endswith(".tmp")


def is_folder_of_memories(path: str) -> bool:
    """Say whether memories are looked for in the folder of this relative path."""
    return path != LOGS and not path.rpartition("/")[2].startswith(".") and is_text(path)


def is_text(name: str) -> bool:
    """Say whether a name is Unicode text: no lone surrogate, as Python decodes foreign bytes."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def beginnings(name: str) -> Iterator[str]:
    """Yield the folders of a name, the outermost first, and the name itself."""
    slash = name.find("/")
    while slash >= 0:
        yield name[:slash]
        slash = name.find("/", slash + 1)
    yield name


def _escaped(character: str) -> str:
    """Return a character, or its escape sequence if it is not printable."""
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")


def _reason_forbidden(part: str) -> str:
    """Return in words why a component that has a forbidden character is refused."""
    if ".." in _decoded(part):
        return _MISLEADS
    return _reason_misleading(part) or _FORBIDDEN_CHARACTER


def _reason_misleading(part: str) -> str:
    """Return why a component could be read as a path or has a control character, "" if neither."""
    decoded = _decoded(part)
    if "/" in decoded or "\\" in decoded or decoded in (".", ".."):
        return _MISLEADS
    if any(_is_control(character) for character in part):
        return _CONTROL_CHARACTER
    return ""


def _is_control(character: str) -> bool:
    """Return whether a character is a control character: C0, DEL or C1."""
    code = ord(character)
    return code < 0x20 or 0x7F <= code < 0xA0  # noqa: PLR2004 - the ranges of Unicode


def _decoded(part: str) -> str:
    """Return a component after repeated percent-decoding and Unicode normalisation (NFKC)."""
    if "%" in part:
        from urllib.parse import unquote  # noqa: PLC0415 - memctl starts without

        for _ in range(_DECODINGS):
            part = unquote(part)
    return unicodedata.normalize("NFKC", part)
