"""The table of `memctl dream …`: consolidate memories, and decide what a dream proposes."""

from memd.cli.grammar import Command, Operand, Option

_PROPOSAL = Operand("PROPOSAL", "the id that memctl dream review shows")
_FILES = Operand(
    "FILE", "only these of its files, as it names them", optional=True, many=True, param="paths"
)

COMMANDS = (
    Command(
        ("dream",),
        "consolidate the memories of a project",
        "Merges duplicates, tightens what is wordy, drops what is superseded and mends the index, "
        "if the gates are open; otherwise says which gate is closed. Without a model it does what "
        "can be done by fixed rules. memctl undo takes all of it back. What the safety checks did "
        "not let through waits as a proposal: memctl dream review.",
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
    Command(
        ("dream", "review"),
        "show what dreams wanted and were not let do",
        "Each open proposal: why it was kept back, and each file with what would be done to it, "
        "as a diff. A file that somebody changed since is marked stale.",
        "dreaming:review",
        operands=(Operand("PROPOSAL", "only this one", optional=True),),
        options=(Option("--all", "also those that were decided"),),
        examples=(("memctl dream review", "what waits for you"),),
    ),
    Command(
        ("dream", "accept"),
        "do what a proposal wants",
        "All of it or some files, as one change that memctl undo takes back. What somebody "
        "changed since stays as it is and is named, and the status is 1.",
        "dreaming:accept",
        operands=(_PROPOSAL, _FILES),
        examples=(("memctl dream accept p3 old-plan.md", "one file of it"),),
    ),
    Command(
        ("dream", "reject"),
        "drop what a proposal wants",
        "All of it or some files. The next dream is told, with the reason.",
        "dreaming:reject",
        operands=(_PROPOSAL, _FILES),
        options=(Option("--reason", "why, for the next dream", "TEXT"),),
        examples=(('memctl dream reject p3 --reason "I meant both"', "and say why"),),
    ),
)
