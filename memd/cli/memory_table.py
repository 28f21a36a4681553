"""The table of the commands that read, write, search, learn and undo memories."""

from memd.cli.grammar import MEMORIES, YES, Command, Operand, Option, moment, number, version

ACTORS = ("client", "extract", "dream", "team", "assistant", "external", "undo")
SCOPES = ("user", "project", "local")
TYPES = ("user", "feedback", "project", "reference")
_SESSION = Option("--session", "the client session that asks", "ID", param="session_id")
_LIMIT = Option("--limit", "how many at most", "N", number)
_PATH = Operand(
    "PATH", "the memory: its path, its file name without .md, or its name", listed=MEMORIES
)
_DRY_RUN = Option("--dry-run", "say what would be done and do nothing")
_BASE = Option("--base-hash", "only if the file still has this SHA-256", "HASH")
_AGENT = Option("--agent", "the sub-agent whose memory is meant", "NAME")
_SUBAGENT = (
    _AGENT,
    Option("--scope", "where that memory lies (default: user)", choices=SCOPES),
)

COMMANDS = (
    Command(
        ("load-prompt",),
        "print the memory section of a system prompt",
        "Prints what a client puts into its system prompt: the instructions and the index. The "
        "same inputs give the same bytes. When memory is off, standard error says which switch "
        "it is and nothing is printed. With --instructions claude the instruction files follow, "
        "for a client that loads none by itself.",
        "prompting:load_prompt",
        method="load_prompt",
        options=(
            _SESSION,
            Option("--mode", "which text", choices=("auto", "agent", "daily_log")),
            Option("--agent", "the sub-agent whose memory is meant", "NAME"),
            Option("--scope", "where that memory lies", choices=SCOPES),
            Option("--skip-index", "leave the index out"),
            Option("--extra-guidelines", "text appended to the guidelines", "TEXT"),
            Option(
                "--instructions",
                "CLAUDE.md, rules and AGENTS.md behind it (default: none)",
                choices=("none", "claude"),
            ),
        ),
        examples=(
            ("memctl load-prompt", "the section for the current project"),
            ("memctl load-prompt --instructions claude", "and CLAUDE.md, AGENTS.md and so on"),
        ),
    ),
    Command(
        ("prefetch",),
        "print the memories that matter for a prompt",
        "Prints the block that a client adds to a prompt; nothing when no memory fits. A memory "
        "comes once per session. Without --session each call is a session of its own. With "
        "--explain it prints instead who chose among how many, and for each memory that was "
        "weighed its score, the parts of it, the words that matched, when it last went out, and "
        "why it was left out; nothing counts as surfaced then.",
        "prompting:prefetch",
        operands=(Operand("QUERY", "the prompt", many=True),),
        options=(
            _SESSION,
            _LIMIT,
            Option("--strategy", "who chooses", choices=("auto", "model", "local")),
            Option(
                "--tool", "a tool that was used of late", "NAME", repeat=True, param="recent_tools"
            ),
            Option(
                "--read", "a file that was read already", "PATH", repeat=True, param="read_paths"
            ),
            Option("--explain", "show scores, cuts and reasons, and mark nothing"),
        ),
        examples=(
            ('memctl prefetch "may I mock the database?"', "what would come to mind"),
            ('memctl prefetch --explain "may I mock the database?"', "and why"),
        ),
    ),
    Command(
        ("extract",),
        "learn from a conversation",
        "Hands a conversation to the background extraction and says at once what became of the "
        "request: accepted, coalesced with a waiting one, or skipped, with the reason. Only what "
        "is new since the last time is read. The session is the transcript's name unless given.",
        "learning:extract",
        options=(
            Option(
                "--transcript", "a client's transcript (*.jsonl)", "FILE", param="transcript_path"
            ),
            Option("--messages", "a JSON array of messages; - is standard input", "FILE"),
            _SESSION,
            Option("--wait", "wait for the end", param=""),
        ),
        examples=(
            ("memctl extract --transcript s1.jsonl --wait", "read it and say what was saved"),
            ("memctl extract --messages - --session s1 < m.json", "messages from a program"),
        ),
    ),
    Command(
        ("list",),
        "list the memories of a project",
        "Newest first: path, type, age and description. Files whose frontmatter is broken are "
        "marked.",
        "memories:list_memories",
        method="memory.list",
        options=(Option("--scope", "only these", choices=("private", "team", *SCOPES)), _AGENT),
        examples=(("memctl list --json", "for a program"),),
    ),
    Command(
        ("show",),
        "print one memory",
        "Prints the file as it is. On a terminal control characters are shown, not obeyed.",
        "memories:show",
        method="memory.read",
        operands=(_PATH,),
        options=_SUBAGENT,
        examples=(("memctl show user_role.md", "read it"),),
    ),
    Command(
        ("search",),
        "search the memories of a project",
        "The best hits first, with the place where they match.",
        "memories:search",
        method="memory.search",
        operands=(Operand("QUERY", "words to look for", many=True),),
        options=(_LIMIT, *_SUBAGENT),
        examples=(("memctl search release freeze", "what is known about it"),),
    ),
    Command(
        ("add",),
        "write a memory",
        "Makes a memory and its line in the index, from its parts or, with --file, from a whole "
        "file with frontmatter. Without PATH --name decides; --file needs PATH. A body of - , or "
        "none at all when standard input is no terminal, is read from standard input. With "
        "--update an existing memory is changed, and only the parts that are given.",
        "memories:add",
        method="memory.write",
        operands=(
            Operand("PATH", "where it goes, relative to the memory directory", optional=True),
        ),
        options=(
            Option("--name", "a short name in kebab case", "NAME"),
            Option("--description", "one specific line: it decides when this is recalled", "TEXT"),
            Option("--type", "what kind of memory", choices=TYPES),
            Option("--body", "the text; - is standard input", "TEXT"),
            Option(
                "--file", "a whole file with frontmatter; - is standard input", "FILE", param=""
            ),
            Option("--title", "the title of its line in the index", "TEXT"),
            Option("--hook", "the rest of that line", "TEXT"),
            Option(
                "--scope",
                "for you or for the team; with --agent where its memory lies",
                choices=("private", "team", *SCOPES),
            ),
            _AGENT,
            Option("--session", "the session it comes from", "ID", param="session_id"),
            Option("--update", "change the memory that is there", param=""),
            _BASE,
        ),
        examples=(
            ("memctl add --name tabs --type user --description … --body …", "remember something"),
            ("memctl add notes/freeze.md --file freeze.md", "take a file in"),
        ),
    ),
    Command(
        ("edit",),
        "edit a memory in your editor",
        "Opens the file in $VISUAL, $EDITOR or vi and writes it back if nobody else changed it "
        "meanwhile. If it cannot be written, your text is kept in a file that is named.",
        "editing:edit",
        method="",
        operands=(_PATH,),
        options=_SUBAGENT,
        examples=(("EDITOR=nano memctl edit user_role.md", "with another editor"),),
    ),
    Command(
        ("rm",),
        "delete a memory",
        "Deletes the file and its line in the index; memctl undo brings both back.",
        "memories:remove",
        method="memory.delete",
        operands=(_PATH,),
        options=(_BASE, *_SUBAGENT, YES),
        examples=(("memctl rm old-plan.md", "forget it"),),
    ),
    Command(
        ("log",),
        "list who changed what, when and why",
        "The changes of the project, or of one memory, newest first and one a line. A TIME is "
        "2026-11-21 10:00, a date, today, yesterday (both from midnight on) or 2 hours ago.",
        "journal:log",
        method="memory.history",
        operands=(Operand("PATH", "only changes of this memory", optional=True, listed=MEMORIES),),
        options=(
            Option("--actor", "only changes of these", choices=ACTORS),
            Option("--session", "only changes of this client session", "ID"),
            Option("--client", "only changes by this program", "NAME"),
            Option("--since", "only changes from then on", "TIME", moment),
            Option("--until", "only changes before that", "TIME", moment),
            Option("--all", "the changes of all projects", param="all_projects"),
            _LIMIT,
            Option("--before", "only changes older than this one", "CHANGE"),
            Option("--follow", "go on with what changes, the newest last", param="", short="-f"),
            *_SUBAGENT,
        ),
        examples=(
            ("memctl log -f --all --actor extract", "what is being learnt, as it happens"),
            ("memctl log --since yesterday --actor dream", "what consolidation did of late"),
            ("memctl log user_role.md", "what became of one memory"),
        ),
        aliases=("history",),
    ),
    Command(
        ("diff",),
        "print what one change did",
        "A unified diff of every file of the change; of the newest one unless named. With --path "
        "and --from or --to, of two versions of one memory: as changes left it, or at times.",
        "journal:diff",
        method="memory.diff",
        operands=(Operand("CHANGE", "the id that memctl log shows", optional=True),),
        options=(
            Option("--path", "only this memory", "MEMORY", listed=MEMORIES),
            Option("--from", "the older version: a change or a time", "VERSION", version),
            Option(
                "--to", "the newer version; the memory as it is unless given", "VERSION", version
            ),
            *_SUBAGENT,
        ),
        examples=(
            ("memctl diff c12", "see it"),
            ("memctl diff --path user_role.md --from yesterday", "what is new since"),
        ),
    ),
    Command(
        ("undo",),
        "take changes back",
        "Restores the files of one change, of a range, or all as of a time, to the byte. What "
        "somebody wrote since stays: it is merged with what comes back, or the file is left alone "
        "and named, and the status is 1. The undo is one change itself, undone by its id. Without "
        "a change it takes back the newest one that is neither an undo nor undone, so a second "
        "undo goes one step further back. With a memory it brings back the version before its last "
        "change, also of one that was deleted; with --change too, as that change left it.",
        "journal:undo",
        method="memory.undo",
        operands=(
            Operand(
                "WHAT",
                "the id of a change that memctl log shows, or a memory",
                optional=True,
                param="",
            ),
        ),
        options=(
            Option("--change", "of a memory: the version that this change left", "CHANGE"),
            Option("--from", "the first change of a range", "CHANGE"),
            Option("--to", "its last one; the newest unless given", "CHANGE"),
            Option("--as-of", "take back everything after this time", "TIME", moment),
            _DRY_RUN,
            *_SUBAGENT,
        ),
        examples=(
            ("memctl undo", "take the newest change back, and again the one before it"),
            ("memctl undo c12", "as if it had not been"),
            ("memctl undo user_role.md", "the last version of one memory"),
            ('memctl undo --as-of "2 hours ago" --dry-run', "what would come back"),
        ),
    ),
    Command(
        ("why",),
        "say where a memory comes from",
        "Who wrote it first and last, in which session, from which message and why, all its "
        "changes, and when it last came to a prompt.",
        "journal:why",
        method="memory.why",
        operands=(_PATH,),
        options=_SUBAGENT,
        examples=(("memctl why user_role.md", "before you believe it"),),
    ),
    Command(
        ("purge",),
        "remove a text from everything that memd keeps, for good",
        "Takes the texts of one memory or with a pattern out of the history, the search, jobs and "
        "proposals; nothing brings them back. Memories themselves are "
        "not changed: those in which it still stands are named. What was removed is listed by its "
        "SHA-256. The history goes on listing the changes, as purged. Without --yes it only says "
        "what it would do.",
        "journal:purge",
        method="memory.purge",
        options=(
            Option(
                "--path", "all versions of this memory of the project", "MEMORY", listed=MEMORIES
            ),
            Option(
                "--pattern",
                "whatever holds this text, in all projects; - reads it from standard input, "
                "which other programs cannot see",
                "TEXT",
            ),
            Option("--regex", "the pattern is a regular expression"),
            Option("--yes", "yes, remove it", param=""),
            _DRY_RUN,
            *_SUBAGENT,
        ),
        examples=(
            ("memctl purge --pattern - --dry-run", "what is kept of a password"),
            ("memctl purge --path router.md --yes", "forget all versions of a memory"),
        ),
    ),
)
