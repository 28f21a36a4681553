"""What a server answers, read strictly: everything in it may be hostile. Pure.

Rules of this file
- A body is measured before it is decoded: how many texts, how long each, how much between them. So
  no answer costs much more memory than its bytes.
- An answer of another shape is no answer (RemoteAnswerError). An entry that has the right shape and
  breaks a rule of ours is left out alone, and the others count.
- Names of people and devices are shown in prompts, so nothing unprintable is in them.
"""

import re
from collections.abc import Collection, Mapping
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from memd.core.names import SUFFIX, TEAM, NameRefusedError, check_name, printable
from memd.core.strict_json import NotJsonError, decode
from memd.core.team import (
    BATCH_BYTES,
    BATCH_ENTRIES,
    ENTRY_BYTES,
    REMOVED,
    REPOSITORY_BYTES,
    REPOSITORY_ENTRIES,
    LeftOut,
    Limits,
)
from memd.core.text import sha256
from memd.remote.link import RemoteAnswerError
from memd.team.values import RemoteEntry

PAGE_ENTRIES = 500
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_STRINGS = 24 * PAGE_ENTRIES  # an entry has 8 members, each a name and a text at most
_STRING_BYTES = 6 * ENTRY_BYTES + 2  # every byte written as \u00xx
_OTHER_BYTES = 128 * PAGE_ENTRIES  # brackets, numbers and what stands between
_REVISIONS = 2**53 - 1
_YEAR_10000 = 253_402_300_800

_Revision = Annotated[int, Meta(ge=0, le=_REVISIONS)]
_Count = Annotated[int, Meta(ge=1, le=_REVISIONS)]
_Hash = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
_Name = Annotated[str, Meta(max_length=200)]
_Seconds = Annotated[float, Meta(ge=0, le=_YEAR_10000)]
_Id = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_-]{1,64}\Z")]
_Cursor = Annotated[str, Meta(pattern=r"\A[!-~]{1,1024}\Z")]
_MARK = re.compile(r"([A-Za-z0-9_-]{1,64})\.([0-9]{1,16})")

# Why an answer is none, and why an entry is left out, in words.
_TOO_MUCH = "it holds more than a page may"
_TWICE = "it names an entry twice"
_AHEAD = "an entry is newer than the repository"
_UNCHANGED = "unchanged"  # the status of bytes that were there
_OTHERS = "it speaks of other entries than were sent"
_DAMAGED = "its text is not the one that its hash names"
_FOLDER = "a folder of it ends in .md"
_TOO_LARGE = f"it is larger than {ENTRY_BYTES} bytes"


class _Limits(Struct):
    entry_bytes: _Count = ENTRY_BYTES
    put_bytes: _Count = BATCH_BYTES
    put_entries: _Count = BATCH_ENTRIES
    max_entries: _Count = REPOSITORY_ENTRIES
    max_bytes: _Count = REPOSITORY_BYTES


class _Stamped(Struct):
    key: str
    revision: _Revision
    at: _Seconds
    member: _Name
    device: _Name = ""


class _Entry(_Stamped, kw_only=True):
    hash: _Hash
    content: str | None = None


class _Removed(_Stamped):
    reason: str = ""


class _Page(Struct):
    epoch: _Id
    revision: _Revision
    entries: list[_Entry]
    removed: list[_Removed] = []
    limits: _Limits = msgspec.field(default_factory=_Limits)
    next: _Cursor | None = None


class _Repository(Struct):
    id: _Id
    remote: str
    role: _Name
    epoch: _Id
    revision: _Revision


class _Repositories(Struct):
    repos: list[_Repository]


class _Joined(Struct):
    token: str
    member: _Name


class _Revised(Struct):
    revision: _Revision
    key: str = ""


class _Written(_Revised):
    status: str = ""


class _Put(_Revised):
    entries: list[_Written] = []


class _Version(_Stamped):
    hash: str = REMOVED
    size: _Revision = 0
    reason: str = ""
    content: str | None = None


class _History(Struct):
    versions: list[_Version]


class _Named(Struct):
    key: str = ""
    rule: str = ""
    line: int = 0
    revision: _Revision | None = None


class _Problem(Struct):
    kind: str = ""
    message: str = ""
    limit: str = ""
    max: _Revision = 0
    have: _Revision = 0
    entries: list[_Named] = []


class _Failure(Struct):
    error: _Problem


T = TypeVar("T")


class Mark(Struct, frozen=True):
    """Up to where a repository is known: the text of its ETag."""

    epoch: str = ""
    revision: int = 0

    @classmethod
    def of(cls, text: str) -> "Mark":
        """Return the mark of a text, that of knowing nothing for any that is none."""
        match = _MARK.fullmatch(text)
        return cls(match[1], int(match[2])) if match else cls()

    def __str__(self) -> str:
        return f"{self.epoch}.{self.revision}" if self.epoch else ""

    def etag(self, revision: int) -> str:
        """Return the strong ETag of a revision in this epoch."""
        return f'"{self.epoch}.{revision}"'


class RemotePage(Struct, frozen=True):
    """A page: entries and tombstones, what is left out of them, and the next page's cursor."""

    mark: Mark
    limits: Limits
    entries: tuple[RemoteEntry, ...]
    left_out: tuple[LeftOut, ...]
    next: str


class RemoteRepository(Struct, frozen=True):
    """A repository that the token may use."""

    id: str
    remote: str
    role: str
    mark: Mark


class RemoteProblem(Struct, frozen=True):
    """Why a server refuses.

    ``limit``, ``max`` and ``have`` are a 413's, ``rules`` are by key, of a 412 or a 422. A 412 says
    that a key is ``forgotten`` where the server knows nothing of it.
    """

    message: str = ""
    limit: str = ""
    max: int = 0
    have: int = 0
    rules: Mapping[str, str] = field(default_factory=dict)
    forgotten: bool = False


def page(server: str, body: bytes, *, hashes: bool = False) -> RemotePage:
    """Return a page; texts are missing where only ``hashes`` were asked for."""
    shape = _read(server, body, _Page)
    items: list[_Entry | _Removed] = [*shape.entries, *shape.removed]
    keys = [item.key for item in items]
    if len(keys) > PAGE_ENTRIES:
        raise RemoteAnswerError(server, _TOO_MUCH)
    if len(set(keys)) < len(keys):
        raise RemoteAnswerError(server, _TWICE)
    entries: list[RemoteEntry] = []
    left_out: list[LeftOut] = []
    for item in items:
        if item.revision > shape.revision:
            raise RemoteAnswerError(server, _AHEAD)
        entry, rule = _entry(item, hashes=hashes)
        if rule:
            left_out.append(LeftOut(printable(item.key), entry.revision, entry.hash, rule))
        else:
            entries.append(entry)
    mark = Mark(shape.epoch, shape.revision)
    limits = Limits(*msgspec.structs.astuple(shape.limits))
    return RemotePage(mark, limits, tuple(entries), tuple(left_out), shape.next or "")


def repositories(server: str, body: bytes) -> tuple[RemoteRepository, ...]:
    """Return the repositories that a token may use."""
    return tuple(
        RemoteRepository(each.id, each.remote, each.role, Mark(each.epoch, each.revision))
        for each in _read(server, body, _Repositories).repos
    )


def joined(server: str, body: bytes) -> tuple[str, str]:
    """Return the token that an invitation's code gave, and the member's name."""
    shape = _read(server, body, _Joined)
    return shape.token, printable(shape.member)


def accepted(server: str, body: bytes, keys: Collection[str]) -> tuple[int, dict[str, int]]:
    """Return the revision that a batch made, and those that its entries have now.

    It is 0 where the server had each text already: the newest revision is another member's then.
    """
    shape = _read(server, body, _Put)
    result = {each.key: each.revision for each in shape.entries}
    if result.keys() != set(keys):
        raise RemoteAnswerError(server, _OTHERS)
    wrote = any(each.status != _UNCHANGED for each in shape.entries)
    return (shape.revision if wrote else 0), result


def removed(server: str, body: bytes) -> int:
    """Return the revision of the tombstone that was just made."""
    return _read(server, body, _Revised).revision


def history(server: str, body: bytes, key: str) -> tuple[RemoteEntry, ...]:
    """Return a key's versions, newest first, with the texts that may be seen."""
    versions = _read(server, body, _History).versions
    if any(each.key != key for each in versions):
        raise RemoteAnswerError(server, _OTHERS)
    results = (_entry(each, hashes=each.content is None) for each in versions)
    return tuple(entry for entry, rule in results if not rule)


def problem(body: bytes) -> RemoteProblem:
    """Return why a server refuses; whatever it says beside the status may be missing."""
    try:
        error = _read("", body, _Failure).error
    except RemoteAnswerError:
        return RemoteProblem()
    rules = {each.key: printable(each.rule) for each in error.entries}
    forgotten = any(each.revision == 0 for each in error.entries)
    limits = (error.limit, error.max, error.have)
    return RemoteProblem(printable(error.message), *limits, rules, forgotten)


def _entry(item: _Entry | _Removed | _Version, *, hashes: bool) -> tuple[RemoteEntry, str]:
    """Return an entry or a tombstone, and the rule that it breaks, "" for none."""
    text = None if isinstance(item, _Removed) else item.content
    content = None if text is None else text.encode()
    key_hash = REMOVED if isinstance(item, _Removed) else item.hash
    entry = RemoteEntry(
        item.key,
        key_hash,
        item.revision,
        printable(item.member),
        printable(item.device),
        item.at,
        content,
        "" if isinstance(item, _Entry) else printable(item.reason),
    )
    try:
        check_key(item.key)
    except NameRefusedError as error:
        return entry, str(error.facts["rule"])
    if key_hash == REMOVED or (hashes and content is None):
        return entry, ""
    if content is None or sha256(content) != key_hash:
        return entry, _DAMAGED
    return entry, _TOO_LARGE if len(content) > ENTRY_BYTES else ""


def check_key(key: str) -> str:
    """Return a key that the rule for names allows. Raises NameRefusedError."""
    check_name(f"{TEAM}{key}")
    if f"{SUFFIX}/" in key.casefold():
        raise NameRefusedError(key, _FOLDER)
    return key


def _read(server: str, body: bytes, shape: type[T]) -> T:
    """Return a body as a shape. Raises RemoteAnswerError."""
    count = inside = 0
    for count, match in enumerate(_STRING.finditer(body), 1):
        size = match.end() - match.start()
        inside += size
        if count > _STRINGS or size > _STRING_BYTES:
            raise RemoteAnswerError(server, _TOO_MUCH)
    if len(body) - inside > _OTHER_BYTES:
        raise RemoteAnswerError(server, _TOO_MUCH)
    try:
        return msgspec.convert(decode(body), shape)
    except NotJsonError as error:
        raise RemoteAnswerError(server, str(error.facts["cause"])) from None
    except msgspec.ValidationError as error:
        raise RemoteAnswerError(server, str(error)) from None
