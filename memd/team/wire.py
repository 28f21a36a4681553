"""Parse the answers of a team's server strictly, since they may be hostile. Pure.

Rules of this file
- The number and size of strings in a body are checked before it is decoded. So decoding needs not
  much more memory than the body.
- An answer of a wrong shape raises RemoteAnswerError. An entry of the right shape that breaks a
  rule is left out, and the other entries are used.
- Names of members and devices are shown in prompts, so unprintable characters are removed.
"""

import re
from collections.abc import Collection
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from memd.base.errors import Refused
from memd.base.names import SUFFIX, TEAM, check_name, name_refused, printable
from memd.base.strict_json import NotJsonError, decode
from memd.base.team import ENTRY_BYTES, REMOVED, LeftOut, Limits
from memd.base.text import sha256
from memd.remote.link import RemoteAnswerError
from memd.team.values import RemoteEntry

PAGE_ENTRIES = 500  # the most entries of a page, with tombstones
# A string of JSON with its escapes; possessive, so that a hostile body takes linear time.
_STRING = rb'(?s)"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_MOST_STRINGS = 24 * PAGE_ENTRIES  # an entry has at most 8 members: 16 strings
_STRING_BYTES = 6 * ENTRY_BYTES + 2  # every byte written as \u00xx
_OTHER_BYTES = 128 * PAGE_ENTRIES  # brackets, numbers, commas and spaces
_REVISIONS = 2**53 - 1  # the largest integer that every JSON parser reads exactly
_YEAR_10000 = 253_402_300_800

_Revision = Annotated[int, Meta(ge=0, le=_REVISIONS)]
_Hash = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
_Name = Annotated[str, Meta(max_length=200)]
_Seconds = Annotated[float, Meta(ge=0, le=_YEAR_10000)]
_Id = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_-]{1,64}\Z")]
_Cursor = Annotated[str, Meta(pattern=r"\A[!-~]{1,1024}\Z")]
_MARK = r"([A-Za-z0-9_-]{1,64})\.([0-9]{1,16})"

# Why an answer is invalid, and why an entry is left out, in words.
_PAGE_TOO_LARGE = "it holds more than a page may"
_NAMED_TWICE = "it names an entry twice"
_NEWER_ENTRY = "an entry is newer than the repository"
_UNCHANGED = "unchanged"  # the status of bytes that were there
_WRONG_KEYS = "it speaks of other entries than were sent"
_HASH_DIFFERS = "its text is not the one that its hash names"
_FOLDER = "a folder of it ends in .md"
_TOO_LARGE = f"it is larger than {ENTRY_BYTES} bytes"


class _Stamped(Struct):
    """The members that entries, tombstones and versions share."""

    key: str
    revision: _Revision
    at: _Seconds
    member: _Name
    device: _Name = ""


class _Entry(_Stamped, kw_only=True):
    """An entry that is not removed."""

    hash: _Hash
    content: str | None = None


class _Removed(_Stamped):
    """A tombstone."""

    reason: str = ""


class _Page(Struct):
    """A page of entries and tombstones."""

    epoch: _Id
    revision: _Revision
    entries: list[_Entry]
    removed: list[_Removed] = []
    limits: Limits = Limits()
    next: _Cursor | None = None


class _Joined(Struct):
    """The answer to an invitation's code."""

    token: str
    member: _Name


class _Revised(Struct):
    """A revision that the server gave."""

    revision: _Revision
    key: str = ""


class _Written(_Revised):
    """An entry of a batch that the server has accepted."""

    status: str = ""


class _Put(_Revised):
    """The answer to a batch."""

    entries: list[_Written] = []


class _Version(_Stamped):
    """A version of an entry or a tombstone in the server's history."""

    hash: str = REMOVED
    size: _Revision = 0
    reason: str = ""
    content: str | None = None


class _History(Struct):
    """The versions of one key."""

    versions: list[_Version]


class _Named(Struct):
    """An entry that a refusal names, with the rule that it breaks."""

    key: str = ""
    rule: str = ""
    revision: _Revision | None = None


T = TypeVar("T")


class Mark(Struct, frozen=True):
    """The epoch and revision up to which a repository is known; its text is that of the ETag."""

    epoch: str = ""
    revision: int = 0

    @classmethod
    def of(cls, text: str) -> "Mark":
        """Parse a mark from its text; an invalid text gives the mark of an unknown repository."""
        match = re.fullmatch(_MARK, text)
        return cls(match[1], int(match[2])) if match else cls()

    def __str__(self) -> str:
        return f"{self.epoch}.{self.revision}" if self.epoch else ""

    def etag(self, revision: int) -> str:
        """Return the strong ETag of a revision in this epoch."""
        return f'"{self.epoch}.{revision}"'


class RemotePage(Struct, frozen=True):
    """A page of entries with tombstones, the entries left out, and the next page's cursor or ""."""

    mark: Mark
    limits: Limits
    entries: tuple[RemoteEntry, ...]
    left_out: tuple[LeftOut, ...]
    next: str


class RemoteRepository(Struct, frozen=True):
    """A repository that the token may use."""

    id: _Id
    remote: str
    role: _Name
    epoch: _Id
    revision: _Revision


class _Repositories(Struct):
    """The answer with all repositories of a remote."""

    repos: tuple[RemoteRepository, ...]


class RemoteProblem(Struct, frozen=True):
    """Why a server refuses a request.

    A 413 has ``limit``, its maximum ``max`` and the value ``have`` that the request would need. A
    412 or 422 names ``entries``.
    """

    message: str = ""
    limit: str = ""
    max: _Revision = 0
    have: _Revision = 0
    entries: tuple[_Named, ...] = ()

    @property
    def rules(self) -> dict[str, str]:
        """The broken rules by key."""
        return {each.key: printable(each.rule) for each in self.entries}

    @property
    def forgotten(self) -> bool:
        """Whether the server does not know one of the keys of a 412 any more."""
        return any(each.revision == 0 for each in self.entries)


class _Failure(Struct):
    """The answer that refuses a request."""

    error: RemoteProblem


def page(server: str, body: bytes, *, hashes: bool = False) -> RemotePage:
    """Parse a page of entries and check each; without texts if only ``hashes`` were requested.

    Raises RemoteAnswerError if the page is invalid as a whole.
    """
    shape = _decode(server, body, _Page)
    items: list[_Entry | _Removed] = [*shape.entries, *shape.removed]
    keys = [item.key for item in items]
    if len(keys) > PAGE_ENTRIES:
        raise RemoteAnswerError(server, _PAGE_TOO_LARGE)
    if len(set(keys)) < len(keys):
        raise RemoteAnswerError(server, _NAMED_TWICE)
    entries: list[RemoteEntry] = []
    left_out: list[LeftOut] = []
    for item in items:
        if item.revision > shape.revision:
            raise RemoteAnswerError(server, _NEWER_ENTRY)
        entry, rule = _check_entry(item, hashes=hashes)
        if rule:
            left_out.append(LeftOut(printable(item.key), entry.revision, entry.hash, rule))
        else:
            entries.append(entry)
    mark = Mark(shape.epoch, shape.revision)
    return RemotePage(mark, shape.limits, tuple(entries), tuple(left_out), shape.next or "")


def repositories(server: str, body: bytes) -> tuple[RemoteRepository, ...]:
    """Parse the list of repositories that a token may use."""
    return _decode(server, body, _Repositories).repos


def joined(server: str, body: bytes) -> tuple[str, str]:
    """Parse the answer to an invitation's code: the new token and the member's name."""
    shape = _decode(server, body, _Joined)
    return shape.token, printable(shape.member)


def accepted(server: str, body: bytes, keys: Collection[str]) -> tuple[int, dict[str, int]]:
    """Parse the answer to a batch: the batch's new revision, and the revision of each entry by key.

    The batch's revision is 0 if the server had all texts already and wrote nothing.
    """
    shape = _decode(server, body, _Put)
    result = {each.key: each.revision for each in shape.entries}
    if result.keys() != set(keys):
        raise RemoteAnswerError(server, _WRONG_KEYS)
    has_written = any(each.status != _UNCHANGED for each in shape.entries)
    return (shape.revision if has_written else 0), result


def removed(server: str, body: bytes) -> int:
    """Parse the answer to a removal: the revision of the tombstone."""
    return _decode(server, body, _Revised).revision


def history(server: str, body: bytes, key: str) -> tuple[RemoteEntry, ...]:
    """Parse the versions of a key, newest first; leave out versions that break a rule.

    Texts that the member may not see are missing.
    """
    versions = _decode(server, body, _History).versions
    if any(each.key != key for each in versions):
        raise RemoteAnswerError(server, _WRONG_KEYS)
    results = (_check_entry(each, hashes=each.content is None) for each in versions)
    return tuple(entry for entry, rule in results if not rule)


def problem(body: bytes) -> RemoteProblem:
    """Parse the reason for a refusal; members that the server did not send are empty."""
    try:
        error = _decode("", body, _Failure).error
    except RemoteAnswerError:
        return RemoteProblem()
    return replace(error, message=printable(error.message))


def _check_entry(item: _Entry | _Removed | _Version, *, hashes: bool) -> tuple[RemoteEntry, str]:
    """Return an entry or tombstone and the rule that it breaks, "" for none."""
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
        item.size if isinstance(item, _Version) else 0,
    )
    try:
        check_key(item.key)
    except Refused as error:
        return entry, str(error.facts["rule"])
    if key_hash == REMOVED or (hashes and content is None):
        return entry, ""
    if content is None or sha256(content) != key_hash:
        return entry, _HASH_DIFFERS
    return entry, _TOO_LARGE if len(content) > ENTRY_BYTES else ""


def check_key(key: str) -> str:
    """Return the key if it is a valid path below ``team/``. Raises Refused if not."""
    check_name(f"{TEAM}{key}")
    # A folder named like a file could stand where another device has that file.
    if f"{SUFFIX}/" in key.casefold():
        raise name_refused(key, _FOLDER)
    return key


def _decode(server: str, body: bytes, shape: type[T]) -> T:
    """Decode a body as JSON of a shape, after checking its sizes. Raises RemoteAnswerError."""
    string_bytes = 0
    for count, match in enumerate(re.finditer(_STRING, body), 1):
        size = match.end() - match.start()
        string_bytes += size
        if count > _MOST_STRINGS or size > _STRING_BYTES:
            raise RemoteAnswerError(server, _PAGE_TOO_LARGE)
    if len(body) - string_bytes > _OTHER_BYTES:
        raise RemoteAnswerError(server, _PAGE_TOO_LARGE)
    try:
        return msgspec.convert(decode(body), shape)
    except NotJsonError as error:
        raise RemoteAnswerError(server, str(error.facts["cause"])) from None
    except msgspec.ValidationError as error:
        raise RemoteAnswerError(server, str(error)) from None
