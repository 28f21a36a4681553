"""Values and limits of agents and of the messages between them, which several floors share."""

from collections.abc import Callable, Iterator
from enum import StrEnum

from msgspec import Struct

from memd.base.values import Scope

# Agents
AGENTS = 500  # that have not ended; as many ended ones are kept
CHILDREN = 64  # of one agent
AGENT_NAME_CHARACTERS = 64
# With one of these names an agent would look like the person, memd or an unregistered caller.
RESERVED_NAMES = ("*", "all", "user", "human", "person", "system", "memd", "unregistered")
IDLE_SECONDS = 300.0  # without a turn, after which an agent is idle
SILENT_SECONDS = 120.0  # without a call, after which an agent without a known process is gone

# Messages
BODY_BYTES = 32 * 1024
SUMMARY_CHARACTERS = 120
MAILBOX_MESSAGES = 200  # unread ones of one agent
MAILBOX_BYTES = 1024 * 1024  # of these messages
RECEIVERS = 100  # of one message
MESSAGES_PER_MINUTE = 60  # of one sender
LEASED_MESSAGES = 20  # in one answer
LEASED_BYTES = 64 * 1024  # in one answer
LEASE_SECONDS = 30.0  # in which a receiver acknowledges messages; then they are queued again
WAIT_SECONDS = 60.0  # that a call may wait for a message
TTL_SHORTEST, TTL_LONGEST = 60.0, 30 * 86_400.0  # seconds; without one a message waits for ever
SHUTDOWN_TTL_SECONDS = 600.0
ANSWER_SECONDS = 60.0  # for a request to shut down or for a plan
LOGGED_MESSAGES = 10_000  # ended ones that stay in the log
BACK_AND_FORTH = 8  # answers between two agents without a person's prompt
BACK_AND_FORTH_SECONDS = 600.0  # in which these answers are counted
HOOK_MESSAGES = 4  # with one event
HOOK_MESSAGE_CHARACTERS = 4_000  # UTF-16 units of one event


class AgentScope(StrEnum):
    """Who shares a sub-agent's memory: all projects, the project's checkout, or this machine."""

    USER = "user"
    PROJECT = "project"
    LOCAL = "local"


AnyScope = Scope | AgentScope  # of a method that takes both


class AgentState(StrEnum):
    """Whether an agent still runs."""

    LIVE = "live"
    IDLE = "idle"
    GONE = "gone"
    ENDED = "ended"


class MessageKind(StrEnum):
    """What a message is for; a notice is memd's own, about a message that was sent."""

    TEXT = "text"
    SHUTDOWN_REQUEST = "shutdown_request"
    SHUTDOWN_RESPONSE = "shutdown_response"
    PLAN_REQUEST = "plan_approval_request"
    PLAN_RESPONSE = "plan_approval_response"
    NOTICE = "notice"


class MessageState(StrEnum):
    """The state of one receiver's copy of a message; all but the first three are final."""

    QUEUED = "queued"
    LEASED = "leased"
    HELD = "held"
    READ = "read"
    REFUSED = "refused"
    EXPIRED = "expired"


class Agent(Struct, frozen=True):
    """A registered agent.

    ``root`` is its project's root and ``directory`` that project's memory directory. ``parent`` is
    the id of the agent that it works for, 0 for none. ``pid`` is 0 where no process is known, and
    ``began`` the seconds from the system's start to the process's. ``session`` is the client's own
    name for its conversation, and ``child`` that of a sub-agent in it. ``registered``, ``seen`` and
    ``ended`` are seconds since 1970.
    """

    id: int
    root: str
    directory: str
    name: str
    parent: int = 0
    client: str = ""
    kind: str = ""
    session: str = ""
    child: str = ""
    pid: int = 0
    began: float = 0.0
    registered: float = 0.0
    seen: float = 0.0
    ended: float | None = None
    transcript: str = ""


class SystemProcess(Struct, frozen=True):
    """A process as the system knows it; ``began`` is in seconds from the system's start."""

    pid: int
    uid: int
    began: float
    parent: int
    name: str


FindProcess = Callable[[int], SystemProcess | None]
_LINEAGE = 32  # a bound, since the table of processes changes while it is read


def lineage(find: FindProcess, pid: int) -> Iterator[SystemProcess]:
    """Yield a process and up to 31 of its ancestors, the nearest first. Blocks."""
    for _ in range(_LINEAGE):
        process = find(pid)
        if process is None:
            return
        yield process
        pid = process.parent


class Sender(Struct, frozen=True):
    """The sender of a message at the time of sending; ``agent`` is 0 for an unregistered one."""

    agent: int
    address: str
    client: str = ""
    root: str = ""
    project: str = ""  # the last part of the root, for a person


class AgentMessage(Struct, frozen=True):
    """A message as its receiver gets it.

    ``sent_at`` is seconds since 1970, ``age`` seconds, ``delivery`` 1 the first time. ``request``
    names the message that a response answers, ``approve`` what it says.
    """

    id: str
    sender: Sender
    kind: MessageKind
    summary: str
    body: str
    sent_at: float
    age: float
    delivery: int
    reply_to: str = ""
    request: str = ""
    approve: bool | None = None
