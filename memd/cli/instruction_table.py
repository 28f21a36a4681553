"""The table of `memctl instructions …`: CLAUDE.md, AGENTS.md and similar files."""

from memd.cli.grammar import Command, Option

VIEWS = ("claude", "codex", "gemini", "cursor", "union")
_VIEW = Option(
    "--view", "whose rules decide; union, all of them together, unless given", choices=VIEWS
)
_TOUCHED = Option(
    "--touched",
    "a file as if the conversation had read it; again for more",
    "FILE",
    repeat=True,
)
_LISTED = (
    "Which files tell an assistant how to work in this directory, in the order of loading (the "
    "later one counts more), and below them those that it does not load, by the reason. Includes "
    "(@path) stand behind the file that names them. Some rules load only with a file that they "
    "are about: --touched shows what comes with one."
)

COMMANDS = (
    Command(
        ("instructions",),
        "show which CLAUDE.md, AGENTS.md and rules are loaded, and why",
        f"{_LISTED} Nothing is ever written to these files. Without a verb, the same as memctl "
        "instructions list.",
        "instructions:list_",
        method="instructions.list",
        options=(_VIEW, _TOUCHED),
        examples=(
            ("memctl instructions", "what your assistants are told here"),
            ("memctl instructions --view codex", "what Codex CLI loads"),
        ),
    ),
    Command(
        ("instructions", "list"),
        "the same",
        _LISTED,
        "instructions:list_",
        options=(_VIEW, _TOUCHED),
        examples=(
            (
                "memctl instructions list --view claude --touched src/main.ts",
                "and the rules that come with that file",
            ),
        ),
    ),
    Command(
        ("instructions", "show"),
        "print the text of what is loaded",
        "The files as one text, as load_prompt offers it to a client that loads none by itself: "
        "each below its path, in quotes that no file can close, at most 100,000 characters. The "
        "same files give the same bytes.",
        "instructions:show",
        method="instructions.read",
        options=(_VIEW, _TOUCHED),
        examples=(("memctl instructions show --view claude | less", "read it all"),),
    ),
    Command(
        ("instructions", "check"),
        "name what is to be mended in instruction files",
        "Long files, rules whose head is broken, includes that lead nowhere or in a circle, rules "
        "that no file of the project fulfils, sentences that contradict each other where no "
        "assistant sees both, and memories that say what a file says. The exit status is 1 if "
        "there is anything.",
        "instructions:check",
        examples=(("memctl instructions check", "before you commit CLAUDE.md"),),
    ),
    Command(
        ("instructions", "approve"),
        "allow includes from outside of this project",
        "An include that leads out of the project is listed and not loaded until you say yes here. "
        "The yes is for this project alone, for what it includes now and later; it is kept in "
        "memd's own state, and no file of a repository can give it. Keys, credentials, files of "
        "other users and what is larger than 1 MiB are never loaded. A program that an assistant "
        "started cannot say yes for you.",
        "instructions:decide",
        examples=(("memctl instructions approve", "once you have seen what waits"),),
    ),
    Command(
        ("instructions", "deny"),
        "take that back",
        "Includes from outside of this project are listed and not loaded, as before any yes.",
        "instructions:decide",
        method="instructions.approve",
    ),
)
