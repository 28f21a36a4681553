"""The table of the command that reports what memd did."""

from memd.cli.grammar import Command, Option, number

COMMANDS = (
    Command(
        ("report",),
        "say what memd did in the last days",
        "What it learnt, changed, merged and removed, what sessions were given, what became of "
        "suggestions, dreams, and what models cost by day and kind of work. What imports and a "
        "team brought, and what was taken back, is not among it.",
        "reporting:report",
        options=(
            Option("--days", "how many days (default: 7)", "N", number),
            Option("--here", "only the current project", param=""),
        ),
        examples=(
            ("memctl report", "the last week, of all projects"),
            ("memctl report --days 30 --here", "a month of this project"),
        ),
    ),
)
