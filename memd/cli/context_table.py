"""The table of `memctl context …`: the conversations whose size memd limits for other programs."""

from memd.cli.grammar import Command, Operand, Option, number

_SESSION = Operand(
    "SESSION",
    "the client's session; the one of this project that was planned last unless given",
    optional=True,
    param="session_id",
    listed="context list",
)
_SHOWN = (
    "How large the conversation is and at which sizes something is due; what was decided about the "
    "results of tools, and the largest that are stored; and how often a prompt cache was lost for "
    "no reason of memd's, with the tokens that were paid again."
)

COMMANDS = (
    Command(
        ("context",),
        "show how large a conversation is and what is stored of it",
        f"{_SHOWN} Without a verb, the same as memctl context show.",
        "context:show",
        method="context.show",
        examples=(("memctl context --json", "for another program"),),
    ),
    Command(
        ("context", "show"),
        "show how large a conversation is and what is stored of it",
        _SHOWN,
        "context:show",
        operands=(_SESSION,),
    ),
    Command(
        ("context", "list"),
        "list the conversations that memd keeps small",
        "Those of the current project, the ones planned last first: the session, how long ago that "
        "was, the size in tokens and the level, and the model.",
        "context:list_",
        options=(Option("--limit", "how many at most", "N", number),),
    ),
    Command(
        ("context", "forget"),
        "forget what was decided about a session, and remove its stored results",
        "For good, and only for a conversation that does not go on: what was replaced in it can no "
        "longer be read, and a program that sends it again gets other decisions.",
        "context:forget",
        operands=(_SESSION._replace(optional=False, help="the client's session"),),
    ),
)
