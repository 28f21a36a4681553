"""The table of `memctl notes …`: the notes that memd writes about a running conversation."""

from memd.cli.grammar import Command, Operand, Option, number

_SESSION = Operand(
    "SESSION",
    "the client's session; the one with the newest notes in this project unless given",
    optional=True,
    param="session_id",
    listed="notes list",
)
_SECTION = Option("--section", "only this section: its title, or how it begins", "TITLE", param="")
_SHOWN = (
    "What the conversation is about, as it was written down while it ran: the state, the task, "
    "files, commands, errors and corrections."
)

COMMANDS = (
    Command(
        ("notes",),
        "show what a conversation is about",
        f"{_SHOWN} Notes are no memories: no other conversation gets them, and they go some time "
        "after their last change. Without a verb, the same as memctl notes show.",
        "notes:show",
        method="notes.read",
        options=(_SECTION,),
        examples=(('memctl notes --section "Current State"', "where the newest one stands"),),
    ),
    Command(
        ("notes", "show"),
        "print the notes of a session",
        _SHOWN,
        "notes:show",
        method="notes.read",
        operands=(_SESSION,),
        options=(_SECTION,),
        examples=(("memctl notes show --section errors", "what went wrong, and what helped"),),
    ),
    Command(
        ("notes", "list"),
        "list the sessions that have notes",
        "Those of the current project, the newest first: the session, how long ago its notes "
        "changed, their size in tokens, and their title.",
        "notes:list_",
        options=(Option("--limit", "how many at most", "N", number),),
    ),
    Command(
        ("notes", "path"),
        "print where the notes of a session lie",
        "The path of the Markdown file. Its last line is memd's own and says up to which message "
        "of the conversation the notes go.",
        "notes:path",
        method="notes.read",
        operands=(_SESSION,),
        examples=(('less "$(memctl notes path)"', "read the file itself"),),
    ),
    Command(
        ("notes", "edit"),
        "change the notes of a session in an editor",
        "Opens the file in VISUAL or EDITOR. Once you change it, it is yours: memd goes on reading "
        "it and writes it no more.",
        "notes:edit",
        method="",
        operands=(_SESSION,),
    ),
    Command(
        ("notes", "rm"),
        "delete the notes of a session",
        "For good: notes have no history. The conversation itself stays; when it goes on, new "
        "notes are written unless notes.enabled is off.",
        "notes:remove",
        method="notes.delete",
        operands=(_SESSION,),
        options=(Option("--all", "the notes of every session of this project", param=""),),
        examples=(("memctl notes rm --all", "leave none of this project"),),
    ),
)
