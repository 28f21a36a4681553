"""The table of the commands that export memories to a file and import them."""

from memd.cli.grammar import Command, Operand, Option

KINDS = (
    "memd",
    "claude-code",
    "codex",
    "basic-memory",
    "claude-mem",
    "mem0",
    "claude-ai",
    "text",
    "cursor",
    "chats",
)
PARTS = ("agents", "team", "notes", "history", "logs", "settings")
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
        "(what a team shares), notes (of sessions), history (changes and older texts), logs (daily "
        "logs) and settings (of memd.toml, without keys and paths). A file that looks as if it "
        "held a credential is left out and named. The format is in docs/export-format.md.",
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
                "memctl export all.tar.gz --all --with agents,notes,history",
                "everything, before you change the machine",
            ),
        ),
    ),
    Command(
        ("import",),
        "bring memories from an export, or from another tool",
        "Reads a folder, a file, a .tar, .tar.gz or .zip, says what it would bring, and keeps that "
        "as a proposal, which memctl dream review shows and memctl dream accept takes. With "
        "--accept it is taken at once, one change a project, which memctl undo takes back; agents' "
        "memories, session notes and history come with --accept alone. Nothing that is here is "
        "overwritten: what is here already is passed over, and two texts of one name both stay. "
        "Credentials, names that lead elsewhere and whatever else cannot be taken are left out and "
        "named. What an import brings is marked as one: it is quoted, and never one of your rules "
        "before you make it one. docs/migration.md has a page for each kind.",
        "portable:import_",
        operands=(Operand("SOURCE", "a folder, a file or an archive"),),
        options=(
            Option("--from", "what it is, instead of finding out", choices=KINDS, param="kind"),
            Option(
                "--project",
                "a directory of the project it goes to, instead of the current one; ID=DIR for one "
                "of several projects in the source, and again for the next",
                "DIR",
                repeat=True,
            ),
            Option("--dry-run", "say what would be brought and do nothing"),
            Option("--accept", "take it at once instead of proposing it"),
            Option("--learn", "learn from the conversations in it, as from past sessions"),
        ),
        examples=(
            ("memctl import all.tar.gz --dry-run", "what an archive would bring"),
            ("memctl import memories.tar.gz --accept", "a project's, into the project here"),
            ("memctl import all.tar.gz --accept --project app=~/app", "one project of several"),
            ("memctl import ~/.codex/memories", "what Codex kept, as a proposal"),
        ),
    ),
)
