"""The table of `memctl suggestions …`: facts from conversations that are not saved yet."""

from memd.cli.grammar import Command, Operand, Option

_SUGGESTION = Operand("SUGGESTION", "the id that memctl suggestions shows")
_TYPE = Option(
    "--type",
    "what kind of memory it becomes; what was guessed unless given",
    choices=("user", "feedback", "project", "reference"),
)

COMMANDS = (
    Command(
        ("suggestions",),
        "show what was said and may be worth remembering",
        "What sounded lasting in conversations and was not saved, since nothing marked it. Each "
        "waits until it is decided, the newest twenty of a project; assistants see a few at their "
        "next prompt and may accept them as well. None of it is a memory until it is accepted.",
        "suggestions:list_",
        method="suggestion.list",
        examples=(("memctl suggestions", "what waits for you"),),
    ),
    Command(
        ("suggestions", "accept"),
        "make a memory of a suggestion",
        "As it was said, with the quotation and its date as evidence; memctl undo takes it back.",
        "suggestions:accept",
        method="suggestion.accept",
        operands=(_SUGGESTION,),
        options=(_TYPE, Option("--text", "other words for it", "TEXT")),
        examples=(("memctl suggestions accept s3", "remember it"),),
    ),
    Command(
        ("suggestions", "dismiss"),
        "drop a suggestion",
        "The same text is not suggested again.",
        "suggestions:dismiss",
        method="suggestion.dismiss",
        operands=(_SUGGESTION,),
        examples=(("memctl suggestions dismiss s3", "not worth it"),),
    ),
)
