"""The table of `memctl instructions`: CLAUDE.md, rules and AGENTS.md."""

from memd.cli.grammar import Command, Option

COMMANDS = (
    Command(
        ("instructions",),
        "show which CLAUDE.md, AGENTS.md and rules are loaded, and why",
        "The files that tell an assistant how to work in this directory, in the order of loading "
        "(the later one counts more), below them those that are not loaded, by the reason, and "
        "what is to be mended: long files, bad heads, includes of a missing file or in a circle. "
        "An include that leads out of the project is listed and not loaded before --allow. That "
        "yes is for this project alone, for what it includes now and later; it is kept in memd's "
        "own state, and no file of a repository and no program that an assistant started can give "
        "it. Keys, credentials, files of other users and what is larger than 1 MiB are never "
        "loaded. Nothing is ever written to these files.",
        "instructions:show",
        method="instructions",
        options=(
            Option("--text", "print the text of what is loaded instead", param=""),
            Option(
                "--touched",
                "a file as if the conversation had read it; again for more",
                "FILE",
                repeat=True,
            ),
            Option("--allow", "load what this project includes from outside", param=""),
            Option("--deny", "take that back", param=""),
        ),
        examples=(
            ("memctl instructions", "what your assistants are told here"),
            ("memctl instructions --touched src/main.ts", "and the rules that come with that file"),
            ("memctl instructions --text | less", "read it all"),
        ),
    ),
)
