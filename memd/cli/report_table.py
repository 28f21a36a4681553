"""The table of the commands that report what memd did and which memories are used."""

from memd.cli.grammar import Command, Operand, Option, number

_HERE = Option("--here", "only the current project", param="")

COMMANDS = (
    Command(
        ("report",),
        "say what memd did in the last days",
        "What it learnt, changed, merged and removed, what prompts were given, what assistants "
        "read and acted on, what became of suggestions, dreams, what models cost, and which "
        "memories nobody has used in 90 days. What imports and a team brought, and what was taken "
        "back, is not among it. Looking counts as no use.",
        "reporting:report",
        options=(
            Option("--week", "the last seven days, as without an option", param=""),
            Option("--days", "how many days (default: 7)", "N", number),
            _HERE,
        ),
        examples=(
            ("memctl report", "the last week, of all projects"),
            ("memctl report --days 30 --here", "a month of this project"),
        ),
    ),
    Command(
        ("usage",),
        "say which memories are used",
        "How often each memory went out with a prompt and to how many sessions, was opened by an "
        "assistant, and was changed by a session that had it; since memd began to count. Looking "
        "counts as no use. A memory is unused when it is older than 90 days and nobody used it in "
        "90 days on which memd ran.",
        "reporting:usage",
        method="usage.list",
        operands=(Operand("PATH", "only these memories", optional=True, many=True, param="paths"),),
        options=(
            Option(
                "--order", "which come first (default: least)", choices=("least", "most", "recent")
            ),
            Option("--unused", "only those that are unused"),
            Option("--limit", "how many at most", "N", number),
        ),
        examples=(
            ("memctl usage --unused", "what nobody needed"),
            ("memctl usage --order most --limit 10", "what is needed most"),
        ),
    ),
)
