"""The table of the commands that read, write, search, learn and undo memories."""

from memd.cli.grammar import MEMORIES, YES, Command, Operand, Option, moment, number

ACTORS = ("client", "extract", "dream", "team", "assistant", "external", "undo")
SCOPES = ("user", "project", "local")
TYPES = ("user", "feedback", "project", "reference")
_SESSION = Option("--session", "the client session that asks", "ID", param="session_id")
_LIMIT = Option("--limit", "how many at most", "N", number)
_PATH = Operand(
    "PATH",
    "the memory: its path, its name, or a part of name or description that no other has",
    listed=MEMORIES,
)
_WHAT = "a memory: path, name, or a part of name or description; or the id of a change"
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
        "Newest first, in 80 columns or those of the terminal (COLUMNS): description, age and "
        "name. Files whose frontmatter is broken are marked. --json has the paths and types.",
        "memories:list_memories",
        method="memory.list",
        options=(Option("--scope", "only these", choices=("private", "team", *SCOPES)), _AGENT),
        examples=(("memctl list --json", "for a program"),),
    ),
    Command(
        ("show",),
        "print one memory, or what one change did",
        "Prints a memory's file as it is, or the diffs of a change. On a terminal control "
        "characters are shown, not obeyed.",
        "memories:show",
        method="memory.read",
        operands=(_PATH._replace(name="WHAT", help=_WHAT, param="path"),),
        options=_SUBAGENT,
        examples=(
            ("memctl show user_role.md", "read it"),
            ("memctl show postgres", "the memory that has this word"),
            ("memctl show c12", "what this change did"),
        ),
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
        "Makes a memory of a sentence, and its line in the index: name and type come from its "
        "words, unless they are given. A WORD that ends with .md is a path: then the parts are "
        "given, or with --file a whole file with frontmatter. A body of -, or none at all when "
        "standard input is no terminal, is read from standard input. With --update a memory that "
        "exists is changed, and only in the parts that are given.",
        "memories:add",
        method="memory.write",
        operands=(
            Operand(
                "WORD",
                "what to remember, or a path relative to the memory directory",
                optional=True,
                many=True,
                param="",
            ),
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
            ('memctl add "Never deploy on a Friday"', "remember it"),
            ("memctl add tabs.md --type user --description … --body …", "from its parts"),
            ("memctl add notes/freeze.md --file freeze.md", "take a file in"),
        ),
        aliases=("remember",),
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
        "Deletes the file and its line in the index; memctl undo brings both back. With --purge "
        "the text goes for good: out of the history, the search, jobs and proposals too. What a "
        "--pattern is found in is not deleted, but named. The history goes on listing the changes, "
        "as purged. Without a terminal to ask on, and without --yes, it only says what it would "
        "purge.",
        "removing:remove",
        method="memory.delete",
        operands=(_PATH._replace(optional=True),),
        options=(
            _BASE,
            Option("--purge", "for good: nothing brings the text back", param=""),
            Option(
                "--pattern",
                "with --purge: whatever holds this text, in all projects; - reads it from "
                "standard input, which other programs cannot see",
                "TEXT",
                param="",
            ),
            Option("--regex", "the pattern is a regular expression", param=""),
            _DRY_RUN._replace(help="with --purge: say what would go", param=""),
            *_SUBAGENT,
            YES,
        ),
        examples=(
            ("memctl rm old-plan.md", "forget it"),
            ("memctl rm --purge router.md", "forget all its versions"),
            ("memctl rm --purge --pattern - --dry-run", "what is kept of a password"),
        ),
        aliases=("forget",),
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
            Option("--patch", "with the diffs of each change", param="", short="-p"),
            *_SUBAGENT,
        ),
        examples=(
            ("memctl log -f --all --actor extract", "what is being learnt, as it happens"),
            ("memctl log --since yesterday --actor dream", "what consolidation did of late"),
            ("memctl log -p user_role.md", "what became of one memory"),
        ),
        aliases=("history",),
    ),
    Command(
        ("undo",),
        "take changes back",
        "Restores the files of one change, of a range, or all as of a time, to the byte. What "
        "somebody wrote since stays: it is merged with what comes back, or the file is left alone "
        "and named, and the status is 1. The undo is one change itself, undone by its id. Without "
        "a change it takes back the newest one that is neither an undo, undone nor purged, so a "
        "second undo goes one step further back. With a memory it brings back the version before "
        "its last change, also of one that was deleted; with --change too, as that change left it.",
        "journal:undo",
        method="memory.undo",
        operands=(
            Operand(
                "WHAT",
                "the id of a change that memctl log shows, or a memory",
                optional=True,
                param="",
                listed=MEMORIES,
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
)
