"""The table of `memctl dream`: consolidate memories."""

from memd.cli.grammar import Command, Option

COMMANDS = (
    Command(
        ("dream",),
        "consolidate the memories of a project",
        "Merges duplicates, tightens what is wordy, drops what is superseded and mends the index, "
        "if the gates are open; otherwise says which gate is closed. Without a model it does what "
        "can be done by fixed rules. memctl undo takes all of it back. What the safety checks did "
        "not let through waits as a proposal: memctl review.",
        "dreaming:dream",
        options=(
            Option("--force", "whatever the gates say; a running dream still wins"),
            Option("--wait", "wait for the end", param=""),
            Option("--last", "print what the newest dream did, as Markdown", param=""),
            Option(
                "--status",
                "say when the next dream is due, and what keeps it from beginning",
                param="",
            ),
        ),
        examples=(
            ("memctl dream --force --wait", "dream now and watch"),
            ("memctl dream --last", "what happened overnight"),
            ("memctl dream --status", "why it does not dream"),
        ),
    ),
)
