"""Send the requests of one sync, and keep the sync's state and what it did. Blocks.

Rules of this file
- Each answer changes the state of the sync (``pausing``) before the answer is used.
- Errors contain neither a body nor a token.
"""

from collections.abc import Callable, Collection
from typing import Concatenate, ParamSpec, TypeVar

from msgspec import Struct, field

from memd.base.errors import Refused, Unavailable
from memd.base.team import HeldEntry, LeftOut, Outgoing, SyncState
from memd.base.values import CommitResult, Plan, Provenance
from memd.remote.link import HttpRequest, HttpResponse, RemoteAnswerError, RemoteUnreachableError
from memd.state.teams import TeamTable
from memd.team import pausing, planning, wire
from memd.team.errors import team_refused, team_unreachable, unexpected
from memd.team.local import LocalFiles, hashes
from memd.team.page_plan import PagePlan
from memd.team.results import SyncResult
from memd.team.values import Membership

SYNC_SECONDS = 60.0  # how long one sync may wait for the server in all
_RETRY_AFTER_DIGITS = 9  # a Retry-After header with more is ignored
_CLIENT_ERROR, _SERVER_ERROR = 400, 500  # the least status of each kind of error
_TRANSIENT = (409, 429)  # client errors that may succeed later
_TOO_SLOW = "its answers take too long"

P = ParamSpec("P")
T = TypeVar("T")


class SyncPorts(Struct, frozen=True):
    """The functions and tables that a sync works with; all of them block.

    ``commit`` carries out a plan in the directory. ``now`` returns seconds since 1970,
    ``monotonic`` monotonic seconds, ``random`` a number from 0 to below 1, and ``new_id`` a UUID.
    """

    table: TeamTable
    files: LocalFiles
    send: Callable[[HttpRequest], HttpResponse]
    commit: Callable[[Plan, Provenance], CommitResult]
    wait: Callable[[float], None]
    now: Callable[[], float]
    monotonic: Callable[[], float]
    random: Callable[[], float]
    new_id: Callable[[], str]


class SyncEffects(Struct):
    """What a sync has done so far: the plans that it committed and the paths that it sent.

    ``held`` are files that it did not send, ``left_out`` entries that it did not write here, and
    ``change`` is the last change set that it made, "" for none.
    """

    pages: list[PagePlan] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    held: list[HeldEntry] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    change: str = ""

    def paths(self) -> dict[str, list[str]]:
        """Return lists of the paths that were taken, merged and removed here, and sent."""
        taken = [path for page in self.pages for path in page.taken]
        merged = [path for page in self.pages for path in page.merged]
        removed = [path for page in self.pages for path in page.removed]
        return {"taken": taken, "merged": merged, "removed": removed, "sent": self.sent}


class Exchange:
    """The requests and results of one sync; ``credentials`` is the digest of token and settings."""

    def __init__(self, membership: Membership, credentials: str, ports: SyncPorts) -> None:
        self.membership = membership
        self.directory = membership.directory
        self.repository = membership.repository
        self.credentials = credentials
        self.ports = ports
        self.table = ports.table
        self.state = ports.table.state(self.directory)
        self.effects = SyncEffects()
        self.pull_all = False  # whether the next pull reads all entries, not only changed ones
        self.progress: Callable[[int], None] = lambda _: None  # gets the number of pulled entries
        self._waited = 0.0  # how long this sync waited for the server, in seconds

    def answer(
        self, request: HttpRequest, expected: Collection[int] = (200,), *, pushing: bool = False
    ) -> HttpResponse:
        """Send a request and return its answer if the status is expected.

        Raises Unavailable for a transient failure and Refused for a permanent
        one. ``pushing`` says whether the request is a push.
        """
        if self._waited > SYNC_SECONDS:
            raise self.transient_error(_TOO_SLOW)
        start = self.ports.monotonic()
        try:
            response = self.ports.send(request)
        except (RemoteUnreachableError, RemoteAnswerError) as error:
            raise self.transient_error(error.cause) from None
        finally:
            self._waited += self.ports.monotonic() - start
        if response.status in expected:
            if response.status < _CLIENT_ERROR:
                self._update_state(response.status, pushing=pushing)
            return response
        problem = wire.problem(response.body)
        message = problem.message or unexpected(response)
        is_client_error = _CLIENT_ERROR <= response.status < _SERVER_ERROR
        if is_client_error and response.status not in _TRANSIENT:
            raise self.permanent_error(response.status, message, pushing=pushing)
        raise self.transient_error(
            message, response.status, _retry_after(response), pushing=pushing
        )

    def read(
        self,
        reader: Callable[Concatenate[str, bytes, P], T],
        body: bytes,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Return a body as a reader of ``wire`` parses it. Raises Unavailable."""
        try:
            return reader(self.membership.server, body, *args, **kwargs)
        except RemoteAnswerError as error:
            raise self.transient_error(error.cause) from None

    def transient_error(
        self,
        cause: str,
        status: int | None = None,
        retry_after: float | None = None,
        *,
        pushing: bool = False,
    ) -> Unavailable:
        """Delay the next request after a transient failure, and return the error to raise.

        ``retry_after`` is the server's header, in seconds.
        """
        # An unexpected success or a redirect says nothing about the repository.
        is_no_error = status is not None and status < _CLIENT_ERROR
        self._update_state(None if is_no_error else status, retry_after, pushing=pushing)
        return team_unreachable(self.membership.server, cause)

    def permanent_error(self, status: int, cause: str, *, pushing: bool = True) -> Refused:
        """Pause the sync after a permanent failure, and return the error to raise."""
        self._update_state(status, pushing=pushing)
        return team_refused(self.membership.remote, cause, status=status)

    def save(self, state: SyncState) -> None:
        """Store the state of the sync if it has changed."""
        if state != self.state:
            self.table.save(self.directory, state)
            self.state = state

    def local(self) -> dict[str, str]:
        """Return the hashes of the files here below ``team/`` by key."""
        return hashes(self.ports.files.files())

    def unsent(self) -> set[str]:
        """Return the keys whose files are not sent: those that are held or left out."""
        return {*self.table.held(self.directory), *self.table.left_out(self.directory)}

    def outgoing(self) -> tuple[Outgoing, ...]:
        """Return the entries to send: files here that differ from their bases."""
        files = self.ports.files.files()
        times = {key: file.at for key, file in files.items()}
        bases = self.table.bases(self.directory)
        return planning.entries_to_send(hashes(files), bases, self.unsent(), times)

    def release(self, *, room: bool = False) -> None:
        """Stop holding the entries that need no decision any more.

        ``room`` says whether the server now accepts more entries or bytes than before.
        """
        held = self.table.held(self.directory)
        if held:
            bases = self.table.bases(self.directory)
            for key in planning.keys_to_release(self.local(), bases, held, room=room):
                self.table.drop(self.directory, HeldEntry, key)

    def result(self) -> SyncResult:
        """Return the result of the sync."""
        effects, pages = self.effects, self.effects.pages
        held_files = self.table.held(self.directory)
        conflicts = self.table.conflicts(self.directory)
        held = [item for page in pages for item in page.held]
        return SyncResult(
            **{name: tuple(paths) for name, paths in effects.paths().items()},
            held=(*held, *effects.held),
            conflicts=tuple(item for page in pages for item in page.conflicts),
            left_out=tuple(effects.left_out),
            change=effects.change,
            waits=self.state.waits,
            left=len(self.outgoing()),
            waiting=len(held_files) + len(conflicts),
        )

    def _update_state(
        self, status: int | None, retry_after: float | None = None, *, pushing: bool = False
    ) -> None:
        """Store the state after an answer; ``status`` is ``None`` if there was none."""
        state = pausing.state_after(
            self.state,
            status,
            retry_after,
            now=self.ports.now(),
            random=self.ports.random,
            credentials=self.credentials,
            pushing=pushing,
        )
        self.save(state)


def _retry_after(response: HttpResponse) -> float | None:
    """Return the seconds in the Retry-After header, ``None`` if it has no valid number."""
    text = response.headers.get("retry-after", "")
    is_number = text.isascii() and text.isdigit() and len(text) <= _RETRY_AFTER_DIGITS
    return float(text) if is_number else None
