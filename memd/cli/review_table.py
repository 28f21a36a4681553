"""The table of `memctl review …`: what waits for the person, and what they decide."""

from memd.cli.grammar import Command, Operand, Option

_ID = Operand("ID", "the id that memctl review shows", listed="review")
_FILES = Operand(
    "FILE",
    "only these files of a proposal, as it names them",
    optional=True,
    many=True,
    param="paths",
)
_KINDS = ("suggestion", "proposal", "message", "team")


def _decision(
    answer: str, summary: str, text: str, example: tuple[str, str], *arguments: Operand | Option
) -> Command:
    """Return the command that decides an item by one answer."""
    return Command(
        ("review", answer),
        summary,
        text,
        "reviewing:decide",
        operands=(_ID, *(each for each in arguments if isinstance(each, Operand))),
        options=tuple(each for each in arguments if isinstance(each, Option)),
        examples=((f"memctl review {answer} {example[0]}", example[1]),),
        method="review.decide",
    )


COMMANDS = (
    Command(
        ("review",),
        "show what waits for you",
        "Suggestions: what was said and may be worth remembering. Proposals: what dreams wanted "
        "and were not let do, each file with its diff. Messages for agents that are held for you. "
        "Of a team: conflicts, files that are not sent, and a server that waits. Each is decided "
        "once, by its id.",
        "reviewing:review",
        options=(
            Option("--all", "of every project"),
            Option("--kind", "only items of this kind", choices=_KINDS),
        ),
        examples=(
            ("memctl review", "what waits here?"),
            ("memctl review --all --kind message", "which messages are held?"),
        ),
        method="review.list",
    ),
    Command(
        ("review", "show"),
        "show one item whole",
        "All of its text, as a quotation with control characters as escapes, and all of its diffs. "
        "A held message is not shown to a program that an assistant started.",
        "reviewing:show",
        operands=(_ID,),
        examples=(("memctl review show m12", "what does it say?"),),
        method="review.list",
    ),
    _decision(
        "accept",
        "let it be done",
        "A suggestion becomes a memory, with the quotation and its date as evidence; a proposal is "
        "carried out, whole or for some files; a held message goes to its receiver; a server that "
        "waits is accepted. What changes memories is one change, which memctl undo takes back. A "
        "file that somebody changed since is merged, or stays and is named, and the status is 1.",
        ("s3", "remember it"),
        _FILES,
        Option("--text", "of a suggestion: other words for it", "TEXT"),
        Option(
            "--type",
            "of a suggestion: what kind of memory it becomes; what was guessed unless given",
            choices=("user", "feedback", "project", "reference"),
        ),
    ),
    _decision(
        "edit",
        "accept it in words of yours",
        "Opens a suggestion, or both texts of a team's conflict, in your editor. What you save "
        "becomes the memory, or is sent to the team.",
        ("s3", "put it better"),
        Option("--file", "file with the text, instead of an editor", "FILE", param=""),
    ),
    _decision(
        "dismiss",
        "drop a suggestion",
        "The same text is not suggested again.",
        ("s3", "not worth it"),
    ),
    _decision(
        "reject",
        "drop what a proposal wants",
        "All of it or some files. The next dream gets the reason.",
        ('p3 --reason "I meant both"', "and say why"),
        _FILES,
        Option("--reason", "why, for the next dream", "TEXT"),
    ),
    _decision(
        "refuse",
        "refuse a held message",
        "It goes to no agent, and its sender gets a notice.",
        ("m12", "not for my agents"),
    ),
    _decision(
        "ours",
        "send your text to the team",
        "Of a conflict your text becomes the team's; a held file is sent.",
        ("team/releases.md", "mine is right"),
    ),
    _decision(
        "theirs",
        "take what the team has",
        "The text here becomes that of the server, or is removed where the server has none.",
        ("team/releases.md", "theirs is right"),
    ),
)
