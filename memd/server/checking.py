"""Check what clients send: keys, sizes, types and secrets of entries, and names of devices. Pure.

The rules that a refusal names: ``name``, ``duplicate`` (twice in one request), ``case`` (another
key differs only in case), ``hash`` (not that of the content), ``size``, ``encoding``, ``format``
(no valid frontmatter), ``type`` (private or missing), ``secret:`` with the scanner's rule.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from memd.base import names
from memd.base.errors import Invalid, Refused
from memd.base.names import check_name
from memd.base.text import sha256
from memd.base.values import MemoryType
from memd.server.errors import EntriesRefusedError, MalformedRequestError, RequestPart
from memd.server.values import Answer, PutEntry
from memd.store import memory
from memd.store.secret import Finding
from memd.store.secret import find as find_secrets

_LABEL = re.compile(r"[^\W_](?:[\w .@+-]{0,62}\w)?")  # members and devices, as people call them
_COMPONENTS = 3  # folders and file name; with "team" before them, as many as a name may have
_REVISION_DIGITS = 18
_REASON_CHARACTERS = 500
_REMOTE = re.compile(
    r"(?:\[[0-9a-f:.]+\]|[a-z0-9_-][a-z0-9._-]*)(?::[0-9]{1,5})?(?:/(?!\.\.?(?:/|$))[^/?#]+)+"
)
_ID = re.compile(r"[0-9a-f]{16}")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def check_entries(entries: Sequence[PutEntry], entry_bytes: int) -> None:
    """Check each entry by itself. Raises EntriesRefusedError with all broken rules."""
    refusals = [refusal for entry in entries for refusal in _refusals(entry, entry_bytes)]
    counts = Counter(entry.key for entry in entries)
    refusals += [_refusal(shown(key), "duplicate") for key, count in counts.items() if count > 1]
    if refusals:
        raise EntriesRefusedError(refusals)


def check_clash(new: Sequence[str], existing: Sequence[str]) -> None:
    """Check that no new key names the same file as an existing one on some file systems.

    Raises EntriesRefusedError.
    """
    clash = names.clash(new, existing)
    if clash:
        new_key, _ = clash
        raise EntriesRefusedError((_refusal(new_key, "case"),))


def is_key(key: str) -> bool:
    """Return whether a text is a valid key of an entry."""
    try:
        check_name(key)
    except Refused:
        return False
    *folders, _ = key.split("/")
    # A folder with a memory's ending could clash with another member's file of that name.
    has_file_folder = any(folder.casefold().endswith(names.SUFFIX) for folder in folders)
    return len(folders) < _COMPONENTS and not has_file_folder


def shown(key: str) -> str:
    """Return a key for an answer, or "" if it is invalid or looks like a credential."""
    return "" if not is_key(key) or _secrets(key) else key


def is_id(text: str) -> bool:
    """Return whether a text has the form of a repository's id."""
    return _ID.fullmatch(text) is not None


def is_revision(text: str) -> bool:
    """Return whether a text has the form of a revision."""
    return text.isascii() and text.isdigit() and len(text) <= _REVISION_DIGITS


def label(text: str, part: RequestPart) -> str:
    """Return a valid name of a member or device. Raises MalformedRequestError for ``part``."""
    if not _LABEL.fullmatch(text) or find_secrets(text):
        raise MalformedRequestError(part)
    return text


def reason(text: str) -> str:
    """Return a valid reason for a removal.

    Raises MalformedRequestError, and EntriesRefusedError if it looks like a credential.
    """
    if not text.strip() or len(text) > _REASON_CHARACTERS or not text.isprintable():
        raise MalformedRequestError(RequestPart.REASON)
    if hits := find_secrets(text):
        raise EntriesRefusedError((_refusal("", f"secret:{hits[0].rule}", hits[0].line),))
    return text


def remote(text: str) -> str:
    """Return a remote that is normalised already. Raises MalformedRequestError for any other."""
    is_lower = text.isprintable() and text == text.lower()
    if not is_lower or not _REMOTE.fullmatch(text) or text.endswith(".git"):
        raise MalformedRequestError(RequestPart.REMOTE)
    return text


def request_id(text: str) -> str:
    """Return the id of a write, a UUID, in lower case. Raises MalformedRequestError."""
    if not _UUID.fullmatch(text):
        raise MalformedRequestError(RequestPart.REQUEST_ID)
    return text.lower()


def _secrets(key: str) -> tuple[Finding, ...]:
    """Return the credentials found in a key, with or without its ending."""
    return find_secrets(key) or find_secrets(key.removesuffix(names.SUFFIX))


def _refusal(key: str, rule: str, line: int = 0) -> Answer:
    """Return the answer's item for a broken rule; line 0 stands for the whole entry."""
    return {"key": key, "rule": rule, "line": line}


def _refusals(entry: PutEntry, entry_bytes: int) -> Iterator[Answer]:
    """Yield each rule that an entry breaks, its secrets last."""
    key = shown(entry.key)
    if not is_key(entry.key):
        yield _refusal(key, "name")
    for secret in _secrets(entry.key):
        yield _refusal(key, f"secret:{secret.rule}")
    if sha256(entry.content) != entry.hash:
        yield _refusal(key, "hash")
    if len(entry.content) > entry_bytes:
        yield _refusal(key, "size")
        return
    try:
        text = entry.content.decode()
    except UnicodeDecodeError:
        yield _refusal(key, "encoding")
        return
    if rule := _format(entry.content):
        yield _refusal(key, rule)
    for secret in find_secrets(text):
        yield _refusal(key, f"secret:{secret.rule}", secret.line)


def _format(content: bytes) -> str:
    """Return "type" or "format" if a shared memory's frontmatter breaks that rule, else ""."""
    parsed = memory.parse(content, "")
    if not parsed.damaged and parsed.type in (None, MemoryType.USER):
        return "type"
    try:
        memory.validate(content, "")
    except Invalid:
        return "format"
    return ""
