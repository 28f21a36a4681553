"""The table of `memctl message …`: messages between agents."""

from memd.cli.agent_table import KEY
from memd.cli.grammar import Command, Operand, Option, number, seconds

_ID = Operand("ID", "the message's id, such as m12")
_PARENT = (
    "The agent is the one of --key or MEMD_AGENT_KEY, else the one in whose process this command "
    "runs, as in a shell of Claude Code's."
)
_LIMIT = Option("--limit", "how many at most", "N", number)
_LEAVE = Option("--leave", "do not acknowledge: they come again after 30 seconds", param="")
_KINDS = (
    "text",
    "shutdown_request",
    "shutdown_response",
    "plan_approval_request",
    "plan_approval_response",
    "notice",
)
_KIND_HELP = f"what it is for (default: text): {', '.join(_KINDS)}"
_STATES = ("queued", "leased", "held", "read", "refused", "expired")

COMMANDS = (
    Command(
        ("message", "send"),
        "send a message to an agent",
        "What is answered queued is on the disk: the agent reads it, or you can see what became of "
        "it with memctl message log ID. An address is NAME, PARENT/NAME for a sub-agent, "
        "NAME@PROJECT in another project, or * for all agents of this one. The text is TEXT, or "
        "standard input for - and where neither TEXT nor --summary is given. The sender is the "
        "agent of --key or MEMD_AGENT_KEY, else the one in whose process this command runs, else "
        "nobody who is registered, whose messages wait for the person unless the settings say "
        "otherwise. Status 1: nobody has the address, or it is refused; 75: the mailbox is full, "
        "or this was one message too many in a minute.",
        "messages:send",
        operands=(
            Operand("TO", "the address, as memctl agent list shows it", listed="agent list"),
            Operand("TEXT", "the message; - is standard input", optional=True, param="body"),
        ),
        options=(
            Option("--summary", "what it is about, at most 120 characters", "SUMMARY"),
            Option("--reply-to", "the message that it answers", "ID"),
            KEY,
            Option("--kind", _KIND_HELP, "KIND", choices=_KINDS),
            Option("--request", "for a response: the request's id", "ID"),
            Option("--approve", "for a response: yes"),
            Option("--decline", "for a response: no", param=""),
            Option("--reason", "for a response to shut down: why", "TEXT"),
            Option("--feedback", "for a response to a plan: what to change", "TEXT"),
            Option("--ttl", "how long it may wait (default: until it is read)", "SECONDS", seconds),
            Option("--request-id", "an id of yours: the same again is sent once", "ID"),
        ),
        examples=(
            ('memctl message send builder "The tests pass."', "tell one agent"),
            ("git diff | memctl message send reviewer - --summary diff", "a text from a pipe"),
            ('memctl message send "*" "Merge freeze at noon."', "tell all of the project"),
        ),
    ),
    Command(
        ("message", "read"),
        "print an agent's next messages",
        "Prints them as quoted text that names each sender, then acknowledges them: they do not "
        "come again. With --wait it waits for the first, and ends with status 1 where nothing "
        f"came. {_PARENT}",
        "messages:read",
        method="message.receive",
        options=(
            KEY,
            _LIMIT,
            Option("--wait", "wait so long for the first one", "SECONDS", seconds),
            _LEAVE,
        ),
        examples=(
            ("memctl message read", "what is new?"),
            ("memctl message read --wait 600", "be woken by the next one"),
        ),
    ),
    Command(
        ("message", "ack"),
        "acknowledge messages",
        f"They are read, and do not come again. {_PARENT}",
        "messages:ack",
        operands=(_ID._replace(many=True, param="ids"),),
        options=(KEY,),
        examples=(("memctl message ack m12 m13", "done with both"),),
    ),
    Command(
        ("message", "log"),
        "list the messages of this project, or say what became of one",
        "Newest first and without their bodies; the newest 10,000 are kept. With ID the state of "
        "that message for each receiver: queued, leased (it is reading), held (it waits for a "
        "person: memctl review), read, refused or expired, and why.",
        "messages:log",
        operands=(_ID._replace(optional=True),),
        options=(
            Option("--agent", "only those of this agent", "ADDRESS"),
            Option("--state", "only those of this state", choices=_STATES),
            _LIMIT,
            Option("--before", "only those before this one", "ID"),
        ),
        examples=(
            ("memctl message log --agent builder", "who wrote to whom?"),
            ("memctl message log m12", "has it been read?"),
        ),
    ),
)
