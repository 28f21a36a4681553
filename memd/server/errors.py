"""Define why a request fails: one class for each failure, with its HTTP status and details."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from memd.base.errors import Fact
from memd.server.values import Answer


class TeamServerError(Exception):
    """A failure that the server answers with a status of HTTP; it has no code of JSON-RPC.

    ``details`` are the members of the answer's error beside kind, message and retryable;
    ``retry_after`` is in seconds, 0 if that is unknown.
    """

    status: int = 500
    kind: str = "failed"
    retryable: bool = False
    exit_status: int = 1
    sentence: str = ""

    def __init__(self, sentence: str = "", *, retry_after: float = 0.0, **facts: Fact) -> None:
        super().__init__(sentence or self.sentence)
        self.sentence = sentence or self.sentence
        self.facts = facts
        self.retry_after = retry_after
        self.details: Mapping[str, Any] = {}


class RequestPart(StrEnum):
    """A part of a request, with what it must be."""

    BEFORE = "before: a revision"
    BODY = "the body: strict JSON as this route takes it, within 30 s"
    CONDITION = "If-Match, If-None-Match: one strong ETag of this server"
    CURSOR = "cursor: one that this server gave"
    CONDITION_MISSING = "If-Match: the entry's ETag is needed"
    DEVICE = "device: 1 to 64 letters, digits, spaces, '.', '_', '-', '@', '+'"
    HEADERS = "headers: each once, and one length"
    KEY = "key: the path below team/"
    LIMIT = "limit: a number within its bounds"
    MEDIA_TYPE = "Content-Type: application/json, without an encoding"
    MEMBER = "member: 1 to 64 letters, digits, spaces, '.', '_', '-', '@', '+'"
    METHOD = "the method: one that this route has"
    NO_BODY = "the body: this route takes none"
    QUERY = "the query: names that this route knows, each once, in UTF-8"
    REASON = "reason: one line of at most 500 characters"
    REMOTE = "remote: host and path in small letters, as github.com/acme/app"
    REQUEST_ID = "Idempotency-Key: a UUID"
    SINCE = "since: a mark that this server gave"
    VIEW = "view: hashes, or none"


_STATUSES = {
    RequestPart.CONDITION_MISSING: 428,
    RequestPart.MEDIA_TYPE: 415,
    RequestPart.METHOD: 405,
}


class MalformedRequestError(TeamServerError):
    """A part of a request is not what it must be."""

    kind = "malformed"
    status = 400
    exit_status = 65

    def __init__(self, part: RequestPart) -> None:
        super().__init__(f"it cannot be read; {part}", part=part.name.lower())
        self.status = _STATUSES.get(part, 400)


class UnauthorisedError(TeamServerError):
    """No token, one that is unknown, over or revoked, or a code that is none."""

    kind = "unauthorised"
    status = 401
    sentence = "the token or the code is unknown, over, used or revoked"


class RoleMissingError(TeamServerError):
    """The member's role does not allow it."""

    kind = "role"
    status = 403

    def __init__(self, needed: str) -> None:
        super().__init__(f"only a {needed} may do that", needed=needed)


class ServerFaultError(TeamServerError):
    """Something went wrong that nobody expected."""

    kind = "fault"
    retryable = True

    def __init__(self, fault: str) -> None:
        super().__init__(f"a fault of the server, which its log has as {fault}")


# What may not be there.
REPOSITORY, ENTRY, MEMBER, TOKEN = "repository", "entry", "member", "token"


class NotThereError(TeamServerError):
    """There is no such thing, or nothing that the member may see."""

    kind = "not_found"
    status = 404

    def __init__(self, what: str) -> None:
        super().__init__(f"there is no such {what}", what=what)


class StorageBusyError(TeamServerError):
    """Others held the storage for too long."""

    kind = "busy"
    retryable = True
    status = 409

    def __init__(self) -> None:
        super().__init__("the storage is busy", retry_after=1.0)


class MarkGoneError(TeamServerError):
    """What changed since a mark is not known any more: it is too old or of another epoch."""

    kind = "gone"
    status = 410
    sentence = "the mark is too old or of another epoch: pull everything"


class EntriesChangedError(TeamServerError):
    """Entries are not what the request is based on; nothing was applied."""

    kind = "changed"
    status = 412

    def __init__(self, entries: Sequence[Answer]) -> None:
        super().__init__(f"{len(entries)} entries differ from what the request is based on")
        self.details = {"entries": list(entries)}


class OverLimitError(TeamServerError):
    """More than a limit allows: ``limit`` is its name, ``most`` its value."""

    kind = "too_large"
    status = 413

    def __init__(self, limit: str, most: int, have: int) -> None:
        super().__init__(f"{limit} is {most}, this has {have}", limit=limit, most=most, have=have)
        self.details = {"limit": limit, "max": most, "have": have}


class EntriesRefusedError(TeamServerError):
    """Entries break a rule; each is named with the rule and the line, never with its text."""

    kind = "refused"
    status = 422

    def __init__(self, entries: Sequence[Answer], sentence: str = "") -> None:
        super().__init__(sentence or f"{len(entries)} entries break a rule")
        self.details = {"entries": list(entries)}


class TooMuchError(TeamServerError):
    """A member removed as much in 24 hours as members may."""

    kind = "too_much"
    status = 422
    sentence = "too many removals in 24 hours: a maintainer may remove more"


class StorageUnavailableError(TeamServerError):
    """The storage does not answer, or could not write."""

    kind = "unavailable"
    retryable = True
    status = 503
    exit_status = 75

    def __init__(self, cause: str) -> None:
        super().__init__("the storage cannot be used now", retry_after=5.0)
        self.cause = cause  # for the operator; it may name a path or a host


class StorageFormatError(TeamServerError):
    """The storage is of another memd-team, or is none."""

    kind = "storage_format"
    status = 503
    exit_status = 78

    def __init__(self, cause: str) -> None:
        super().__init__(f"the storage cannot be used: {cause}", cause=cause)
