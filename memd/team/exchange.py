"""What all steps of a sync share: requests, what is known between them, what was done. Blocks.

Rules of this file
- Each answer moves the state of the sync (``pausing``) before anybody goes by it.
- A failure is told without a body and without a token.
"""

from collections.abc import Callable, Collection
from typing import Concatenate, ParamSpec, TypeVar

from msgspec import Struct, field

from memd.core.team import HeldEntry, LeftOut, Outgoing, SyncState
from memd.core.values import CommitResult, Plan, Provenance
from memd.remote.link import HttpRequest, HttpResponse, RemoteAnswerError, RemoteUnreachableError
from memd.state.tables import TeamTable
from memd.team import pausing, planning, wire
from memd.team.errors import TeamRefusedError, TeamUnreachableError
from memd.team.local import LocalFiles, hashes
from memd.team.page_plan import PagePlan
from memd.team.results import SyncResult
from memd.team.values import Membership

SYNC_SECONDS = 60.0  # of waiting for the server, in one sync
_DIGITS = 9  # of a Retry-After; one with more is no time
_CLIENT, _SERVER, _TRANSIENT = 400, 500, (409, 429)
_SLOW = "its answers take too long"

P = ParamSpec("P")
T = TypeVar("T")


class SyncPorts(Struct, frozen=True):
    """What a sync works with; all of it blocks.

    ``commit`` makes a plan true in the directory. ``now`` is seconds since 1970, ``monotonic``
    monotonic seconds. ``random`` returns a number from 0 to below 1, ``new_id`` a UUID.
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


class SyncDone(Struct):
    """What a sync has done so far: the plans that were committed, what went out."""

    pages: list[PagePlan] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    held: list[HeldEntry] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    change: str = ""

    def paths(self) -> dict[str, list[str]]:
        """Return the paths that were taken, merged and removed here, and those that were sent."""
        taken = [path for page in self.pages for path in page.taken]
        merged = [path for page in self.pages for path in page.merged]
        removed = [path for page in self.pages for path in page.removed]
        return {"taken": taken, "merged": merged, "removed": removed, "sent": self.sent}


class Exchange:
    """One sync's dealings with its server; ``credentials`` is the digest of token and settings."""

    def __init__(self, membership: Membership, credentials: str, ports: SyncPorts) -> None:
        self.membership = membership
        self.directory = membership.directory
        self.repository = membership.repository
        self.credentials = credentials
        self.ports = ports
        self.table = ports.table
        self.state = ports.table.state(self.directory)
        self.done = SyncDone()
        self.everything = False  # whether the next pull is one of everything
        self.progress: Callable[[int], None] = lambda _: None  # told how many entries came so far
        self._waited = 0.0  # for the server, in seconds

    def answer(
        self, request: HttpRequest, expected: Collection[int] = (200,), *, pushing: bool = False
    ) -> HttpResponse:
        """Return the answer to a request when its status is expected.

        Raises TeamUnreachableError for what passes, TeamRefusedError for what does not.
        """
        if self._waited > SYNC_SECONDS:
            raise self.failed(_SLOW)
        since = self.ports.monotonic()
        try:
            response = self.ports.send(request)
        except (RemoteUnreachableError, RemoteAnswerError) as error:
            raise self.failed(error.cause) from None
        finally:
            self._waited += self.ports.monotonic() - since
        if response.status in expected:
            if response.status < _CLIENT:
                self._moved(response.status, pushing=pushing)
            return response
        problem = wire.problem(response.body)
        message = problem.message or f"HTTP {response.status}"
        if _CLIENT <= response.status < _SERVER and response.status not in _TRANSIENT:
            raise self.paused(response.status, message, pushing=pushing)
        raise self.failed(message, response.status, _retry_after(response), pushing=pushing)

    def read(
        self,
        reader: Callable[Concatenate[str, bytes, P], T],
        body: bytes,
        *a: P.args,
        **k: P.kwargs,
    ) -> T:
        """Return what a reader of ``wire`` makes of a body. Raises TeamUnreachableError."""
        try:
            return reader(self.membership.server, body, *a, **k)
        except RemoteAnswerError as error:
            raise self.failed(error.cause) from None

    def failed(
        self,
        cause: str,
        status: int | None = None,
        retry_after: float | None = None,
        *,
        pushing: bool = False,
    ) -> TeamUnreachableError:
        """Back off, and return the error that says why."""
        redirected = status is not None and status < _CLIENT  # it says nothing of the repository
        self._moved(None if redirected else status, retry_after, pushing=pushing)
        return TeamUnreachableError(self.membership.server, cause)

    def paused(self, status: int, cause: str, *, pushing: bool = True) -> TeamRefusedError:
        """Pause, and return the error that says why."""
        self._moved(status, pushing=pushing)
        return TeamRefusedError(self.membership.remote, cause, status=status)

    def save(self, state: SyncState) -> None:
        """Write down what the sync knows, if it is news."""
        if state != self.state:
            self.table.save(self.directory, state)
            self.state = state

    def check_accepted(self) -> None:
        """Raise TeamRefusedError while the server may be wrong and a person has to accept."""
        if self.state.waits:
            raise TeamRefusedError(self.membership.remote, self.state.waits)

    def local(self) -> dict[str, str]:
        """Return the hashes of the files below ``team/`` by key."""
        return hashes(self.ports.files.files(self.ports.now()))

    def unsent(self) -> set[str]:
        """Return the keys that are not sent whatever stands there."""
        return {*self.table.held(self.directory), *self.table.left_out(self.directory)}

    def outgoing(self) -> tuple[Outgoing, ...]:
        """Return what is to be sent."""
        files = self.ports.files.files(self.ports.now())
        times = {key: file.at for key, file in files.items()}
        bases = self.table.bases(self.directory)
        return planning.outgoing(hashes(files), bases, self.unsent(), times)

    def release(self, *, room: bool = False) -> None:
        """Hold no longer what needs nobody's decision; ``room``: the server takes more."""
        held = self.table.held(self.directory)
        if held:
            bases = self.table.bases(self.directory)
            for key in planning.released(self.local(), bases, held, room=room):
                self.table.drop(self.directory, HeldEntry, key)

    def result(self) -> SyncResult:
        """Return what was done."""
        done, pages = self.done, self.done.pages
        return SyncResult(
            **{name: tuple(paths) for name, paths in done.paths().items()},
            held=(*(item for page in pages for item in page.held), *done.held),
            conflicts=tuple(item for page in pages for item in page.conflicts),
            left_out=tuple(done.left_out),
            change=done.change,
            waits=self.state.waits,
            left=len(self.outgoing()),
        )

    def _moved(
        self, status: int | None, retry_after: float | None = None, *, pushing: bool = False
    ) -> None:
        state = pausing.after(
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
    text = response.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None
