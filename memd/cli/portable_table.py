"""The commands that take memories along and bring them back."""

from memd.cli.grammar import Command, Operand, Option

PARTS = ("agents", "team", "notes", "history", "logs", "settings")


def parts(text: str) -> list[str]:
    """Return the parts that a list with commas names. Raises ValueError."""
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
        "(what a team shares), notes (of sessions), history (changes and older texts), logs (daily "
        "logs) and settings (of memd.toml, without keys and paths). A file that looks as if it "
        "held a credential is left out and named. The format is in docs/export-format.md.",
        "portable:export",
        method="export",
        operands=(Operand("DEST", "a new folder, or a new file that ends in .tar.gz"),),
        options=(
            Option("--project", "a directory of the project, instead of the current one", "DIR"),
            Option("--all", "every project of yours that memd can find"),
            Option("--with", f"also these parts, with commas: {', '.join(PARTS)}", "PARTS", parts),
        ),
        examples=(
            ("memctl export ~/memories", "a folder with this project's memories"),
            (
                "memctl export all.tar.gz --all --with agents,notes,history",
                "everything, before you change the machine",
            ),
        ),
    ),
)
