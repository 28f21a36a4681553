"""The table of `memctl team …`: join a team, share memories, and decide what comes in."""

from memd.cli.grammar import MEMORIES, YES, Command, Operand, Option, number

_PATH = Operand("PATH", "the memory, as memctl list shows it or without team/", listed=MEMORIES)

COMMANDS = (
    Command(
        ("team", "join"),
        "share the memories below team/ with a project's members",
        "Shows the server, the repository and what would be sent, asks, and reads the invitation "
        "code from the terminal, which does not show it, or from a file. The repository is the one "
        "that origin names in .git/config. A device that has a token for the server needs no code "
        "for another clone. Afterwards team/ is kept equal: changes go out within seconds, others' "
        "come at the start of a session and every five minutes in it.",
        "team:join",
        operands=(Operand("URL", "the server's address: https://host or https://host:port"),),
        options=(
            Option("--repo", "the repository, instead of what origin names", "REPOSITORY"),
            Option("--code-file", "file with the code; - is standard input", "FILE", param=""),
            YES,
        ),
        examples=(
            ("memctl team join https://team.example", "join, and type the code"),
            ("memctl team join https://team.example --yes --code-file code", "in a script"),
        ),
    ),
    Command(
        ("team", "leave"),
        "stop sharing, and give this device's token up",
        "Revokes the token, unless another clone uses it. The files stay below team/, as "
        'private files of yours that memctl edit and memctl rm change; enabled = "true" in [team] '
        "of memd.toml lets them be recalled. With --remove they go, and memctl undo brings them "
        "back.",
        "team:leave",
        options=(Option("--remove", "remove the files below team/ as well"), YES),
        examples=(("memctl team leave", "keep what the team knew"),),
    ),
    Command(
        ("team", "status"),
        "say how far this project is equal with its team",
        "Server, repository, member, when it last sent and took, what goes out next, and what "
        "waits for you: conflicts, held files, files that were left out, and why. With a path, how "
        "that memory differs from what the team has.",
        "team:status",
        operands=(_PATH._replace(optional=True),),
        examples=(("memctl team status", "is everything sent?"),),
    ),
    Command(
        ("team", "sync"),
        "take what others wrote and send what changed here, now",
        "Takes what is new on the server. What both sides changed is merged; where that cannot be, "
        "the server's text stands in the file and yours is kept for memctl team resolve. Sends "
        "also what the server refused before.",
        "team:call_and_print",
        examples=(("memctl team sync", "do not wait for the next five minutes"),),
    ),
    Command(
        ("team", "log"),
        "list the versions of one memory on the server, or the members",
        "Newest first: revision, age, member, device, size; of a removal its reason. Without a "
        "path the members whose memories stand here: how many, from which devices, and when the "
        "last came.",
        "team:log",
        operands=(_PATH._replace(optional=True),),
        options=(
            Option("--limit", "how many at most", "N", number),
            Option("--before", "only versions before this revision", "REVISION", number),
        ),
        examples=(("memctl team log team/releases.md", "who wrote it"),),
    ),
    Command(
        ("team", "share"),
        "move a private memory to the team",
        "Shows it, asks, and moves it below team/ as one change. The id of the session it came "
        "from does not go along.",
        "team:share",
        operands=(Operand("PATH", "the private memory, as memctl list shows it", listed=MEMORIES),),
        options=(YES,),
        examples=(("memctl team share releases.md", "let the others know"),),
    ),
    Command(
        ("team", "remove"),
        "remove a memory for all members",
        "Deleting the file does not do that: the next pull brings it back, since nobody can tell "
        "deleted from not here yet. You may remove what you added; a maintainer, everything. It "
        "stays in the server's history, and memctl team resolve PATH restore "
        "brings it back.",
        "team:remove",
        operands=(_PATH,),
        options=(Option("--reason", "why, for the others", "TEXT"), YES),
        examples=(("memctl team remove team/freeze.md --reason over", "it is no longer true"),),
    ),
    Command(
        ("team", "resolve"),
        "decide what waits for you",
        "Of a conflict the team's text stands in the file and yours is kept; a held file stands "
        "here and is not sent. theirs takes what the team has; ours sends yours; edit opens both "
        "texts of a conflict in your editor, marked, and sends what you save. restore brings a "
        "memory back that was removed or changed: its last version, or that of a revision. accept, "
        "without a path, goes on with a server that would remove many files, or is empty, older or "
        "another one than before: what it removed is removed here, what it lost is sent again.",
        "conflicts:resolve",
        operands=(
            _PATH._replace(optional=True),
            Operand(
                "HOW",
                "what it becomes",
                choices=("theirs", "ours", "edit", "restore", "accept"),
            ),
        ),
        options=(
            Option("--file", "with edit: the text, instead of an editor", "FILE", param=""),
            Option(
                "--revision", "with restore: this version of memctl team log", "REVISION", number
            ),
            YES,
        ),
        examples=(
            ("memctl team resolve team/releases.md edit", "put both together"),
            ("memctl team resolve accept", "after the server's backup was restored"),
        ),
    ),
)
