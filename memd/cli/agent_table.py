"""The table of `memctl agent …`: list, register, end and merge agents."""

from memd.cli.grammar import Command, Option, number

KEY = Option("--key", "the agent's key, instead of MEMD_AGENT_KEY", "KEY")

COMMANDS = (
    Command(
        ("agent", "list"),
        "list the agents of this project",
        "Address, state, client, messages that it has not read, and what a sub-agent is doing. "
        "live: its process or connection is there; idle: so it is, without a turn for five "
        "minutes; gone: it is not, and its mailbox waits for its session; ended: it gets no more "
        "messages. With --watch what changes is printed as it does, until Ctrl-C or --timeout; "
        "only then memd makes lines of what sub-agents are doing.",
        "agents:list_",
        options=(
            Option("--all", "those of every project"),
            Option("--watch", "go on, and print what changes", param=""),
        ),
        examples=(
            ("memctl agent list", "to whom can I write?"),
            ("memctl agent list --watch", "what are they doing?"),
        ),
    ),
    Command(
        ("agent", "register"),
        "register an agent, and print its key",
        "For a shell or a script that wants to get messages and to send them under a name. The "
        "name is lower case, and nobody's who is there; without one memd gives it. The key is "
        "shown once: memd keeps only its hash. Put it into MEMD_AGENT_KEY. Without --pid the "
        "agent is there for two minutes after each of its commands. Registering the same session "
        "again gives the same agent and mailbox, and a new key.",
        "agents:register",
        options=(
            Option("--name", "the agent's name", "NAME"),
            Option(
                "--session",
                "a name of your own, to be the same agent later",
                "SESSION",
                param="session_id",
            ),
            Option("--kind", "what it is, for a person", "KIND"),
            Option(
                "--parent", "the address of the agent that it works for; needs its key", "ADDRESS"
            ),
            KEY._replace(help="the parent's key, instead of MEMD_AGENT_KEY"),
            Option("--pid", "a process of yours: the agent is there while it runs", "PID", number),
        ),
        examples=(
            ("memctl agent register --name builder --pid $$", "be there as long as this shell"),
            ("memctl --json agent register --name ci --session nightly", "in a script"),
        ),
    ),
    Command(
        ("agent", "end"),
        "end an agent, and those that work for it",
        "It neither sends nor gets messages from then on. What it has not read goes back: its "
        "senders are told. No process is ended.",
        "agents:end",
        options=(KEY,),
        examples=(("memctl agent end", "this shell is done"),),
    ),
)
