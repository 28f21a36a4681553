"""The table of the commands that export memories to a file and import them."""

from memd.cli.grammar import Command, Operand, Option

PARTS = ("agents", "team", "notes", "logs")
ALLOWED_VALUES = {"parts": f"one or more of {', '.join(PARTS)}, with commas"}


def parts(text: str) -> list[str]:
    """Return the names in a comma-separated list of parts. Raise ValueError for an unknown one."""
    names = [name.strip() for name in text.split(",")]
    return [PARTS[PARTS.index(name)] for name in names]


COMMANDS = (
    Command(
        ("export",),
        "write memories as plain files, to keep or to take along",
        "Makes a folder, or with a name that ends in .tar.gz an archive, with the memories of this "
        "project as they lie on the disk, a manifest and checksums for sha256sum -c. Nothing is "
        "there until all of it is, and what is there already is never touched. Without --with only "
        "your private memories are taken; its parts are agents (memories of sub-agents), team "
        "(what a team shares), notes (of sessions) and logs (daily logs). A file that looks as if "
        "it held a credential is left out and named. The format is in docs/export-format.md.",
        "portable:export",
        operands=(Operand("DEST", "a new folder, or a new file that ends in .tar.gz"),),
        options=(
            Option("--project", "a directory of the project, instead of the current one", "DIR"),
            Option("--all", "every project of yours that memd can find"),
            Option("--with", f"also these parts, with commas: {', '.join(PARTS)}", "PARTS", parts),
        ),
        examples=(
            ("memctl export ~/memories", "a folder with this project's memories"),
            (
                "memctl export all.tar.gz --all --with agents,notes",
                "everything, before you change the machine",
            ),
        ),
    ),
    Command(
        ("import",),
        "bring memories from an export, or from another tool",
        "Reads a folder, a file, a .tar, .tar.gz or .zip and says what it would bring. With "
        "--accept it is taken, one change a project, which memctl undo takes back. Nothing that "
        "somebody wrote here is overwritten: what is here already is passed over, and two texts of "
        "one name both stay. "
        "Credentials, names that lead elsewhere and whatever else cannot be taken are left out and "
        "named. What an import brings is marked as one: it is quoted, and never one of your rules "
        "before you make it one. docs/migration.md has each kind, and how to "
        "write a list from what other tools keep.",
        "portable:import_",
        operands=(Operand("SOURCE", "a folder, a file or an archive"),),
        options=(
            Option(
                "--from",
                "what it is, instead of finding out: memd, claude-code, codex or text",
                "KIND",
                param="kind",
            ),
            Option(
                "--project",
                "a directory of the project it goes to, instead of the current one; ID=DIR for one "
                "of several projects in the source, and again for the next",
                "DIR",
                repeat=True,
            ),
            Option("--dry-run", "say what would be brought and do nothing, as without --accept"),
            Option("--accept", "take it"),
        ),
        examples=(
            ("memctl import all.tar.gz", "what an archive would bring"),
            ("memctl import memories.tar.gz --accept", "a project's, into the project here"),
            ("memctl import all.tar.gz --accept --project app=~/app", "one project of several"),
            ("memctl import ~/.codex/memories --accept", "what Codex kept"),
        ),
    ),
)
