"""The table of the commands for the daemon, its jobs, and the set-up of clients."""

from memd.base.limits import LOG_LEVELS
from memd.cli.grammar import YES, Command, Operand, Option, number

_JOB = Operand("JOB", "the id that memctl job list shows")
_SESSION = Operand("SESSION", "the client's session", param="session_id")
_DRY_RUN = Option("--dry-run", "show what would be done and do nothing")
SHELLS = ("bash", "zsh", "fish")
CLIENTS = (
    "claude-code",
    "codex",
    "gemini",
    "cursor",
    "vscode",
    "zed",
    "claude-desktop",
    "copilot",
    "goose",
    "opencode",
    "neovim",
    *SHELLS,
)

COMMANDS = (
    Command(
        ("status",),
        "say how the daemon is",
        "On one screen: whether it is well, what waits for you, what it is doing, what models cost "
        "today, the last dream, sessions and projects. The most important comes first.",
        "status:status",
        examples=(("memctl status --json", "for a program"),),
    ),
    Command(
        ("ui",),
        "look at memories in a browser",
        "Serves a page on this machine alone, in the foreground, and prints its address, which "
        "works once and within two minutes. Ends on Ctrl-C, with its terminal, on its Quit button, "
        "or once no page was open for a while. Looking changes nothing; with --write memories can "
        "be changed and what waits can be decided. Needs the extra ui.",
        "page:ui",
        method="",
        options=(
            Option("--write", "let the page change memories, and decide what waits"),
            Option("--port", "the port to listen at (default: a free one)", "N", number),
            Option("--no-open", "print the address and open no browser"),
            Option(
                "--idle", "minutes without a page until it ends (default: 30)", "MINUTES", number
            ),
        ),
        examples=(
            ("memctl ui", "all projects, read-only"),
            ("memctl ui --write --no-open", "with forms, over a forwarded port"),
        ),
    ),
    Command(
        ("doctor",),
        "check that everything works, and name remedies",
        "The daemon's self-checks, for the current project too, and on this side the clients' "
        "hooks and the service. The status is 1 when a check failed. With --fix the remedies that "
        "undo can take back are applied first: lines of the index that lead to no file go.",
        "operation:doctor",
        method="",
        options=(Option("--fix", "apply the remedies that can be undone"),),
        examples=(
            ("memctl doctor", "when memory does not behave"),
            ("memctl doctor --fix", "take out index lines that lead nowhere"),
        ),
    ),
    Command(
        ("job", "list"),
        "list background jobs",
        "The newest first, of all projects.",
        "jobs:list_jobs",
        options=(
            Option("--parked", "only jobs that failed again and again"),
            Option("--here", "only jobs of the current project", param=""),
            Option("--limit", "how many at most", "N", number),
        ),
        examples=(("memctl job list --here", "what memd does for this project"),),
    ),
    Command(
        ("job", "show"),
        "show one job",
        "Its state and times, its error or what it saved, by which engine and with how many "
        "tokens; and what a model did, turn by turn. --json has all that is kept.",
        "jobs:show",
        method="job.list",
        operands=(_JOB,),
    ),
    Command(
        ("job", "wait"),
        "wait for a job to end",
        "Prints it then. The status is 1 when it failed or was cancelled.",
        "jobs:wait",
        operands=(_JOB,),
    ),
    Command(
        ("job", "cancel"),
        "end a job now",
        "What it had not committed is as before.",
        "jobs:cancel",
        operands=(_JOB,),
    ),
    Command(
        ("pause",),
        "stop background work",
        "No job starts until memctl resume, also after a restart; what runs is finished. Jobs are "
        "accepted and kept meanwhile, and prompts get their memories as ever.",
        "jobs:pause",
        options=(Option("--now", "put running jobs back into the queue as well"),),
    ),
    Command(
        ("resume",),
        "let background work go on",
        "Ends a pause, and lets models be asked again at once where they failed three times in a "
        "row (memctl status names these). No pause is no error.",
        "jobs:resume",
    ),
    Command(
        ("stop",),
        "end the daemon",
        "It finishes what it is at and ends. The next client starts one again. No daemon is no "
        "error.",
        "operation:stop",
        method="",
        aliases=("shutdown",),
    ),
    Command(
        ("restart",),
        "let the installed memd take over from the one that runs",
        "After an upgrade. The installed one first has to say that it could start; if not, "
        "the one that runs goes on. Jobs are finished while everybody is served, and requests "
        "under way are answered; then the installed one is started. Where none runs, one is "
        "started too.",
        "restarting:restart",
        method="",
        examples=(("pipx upgrade memdir-daemon && memctl restart", "a new version"),),
    ),
    Command(
        ("service", "install"),
        "run memd as a service of this user",
        "Puts a systemd user unit and its socket, or a launchd agent, in place and starts it. "
        "Where no supervisor can be reached it says so, and what to run; the status is 1 then. A "
        "daemon that runs already is asked to end first.",
        "service:install",
        method="",
        options=(_DRY_RUN, Option("--no-enable", "put the files in place and start nothing")),
        examples=(("memctl service install --dry-run", "read the files first"),),
    ),
    Command(
        ("service", "uninstall"),
        "take the service away again",
        "Stops it and removes the files that memctl wrote; files of others are left alone.",
        "service:uninstall",
        method="",
        options=(_DRY_RUN, YES),
    ),
    Command(
        ("service", "status"),
        "say whether memd is a service",
        "Each file: installed, outdated, foreign or absent. The status is 1 unless all are "
        "installed.",
        "service:status",
        method="",
    ),
    Command(
        ("setup",),
        "connect clients",
        "Writes into a client's own configuration what connects it, and nothing else: its hooks, "
        "its list of tools, a plugin; for a shell the completion of memctl. All other bytes stay "
        "as they are, and --remove gives back those that were there. While a client is set up, "
        "its file as it was before is kept as NAME.memd-backup, which only you may read; --remove "
        "deletes it. Without a name each client that is here is offered; where nobody is there to "
        "say yes, that is all, unless --yes is given. A second run changes nothing. For cursor, "
        "vscode, zed, claude-desktop, copilot and goose it prints what to add to which file. With "
        "--messages an assistant's hooks register its sessions as agents and bring what other "
        "agents sent into its turns (docs/agents.md); that stays until --messages --remove, which "
        "leaves the rest. --rules works alike: before each tool the client asks memd, which "
        "answers by your rules (docs/rules.md). --remove --all is for the end of memd here: every "
        "client, the service, the daemon, the hook, its spool and the tokens of teams go; "
        "memories, history and settings stay. On a terminal it ends with one question, where "
        "claude, codex or gemini is here and you named no model: may memd read a session once, "
        "when it ends, with your plan (docs/models.md)? Without an answer it may not, and you are "
        "not asked again.",
        "setup:setup",
        method="",
        operands=(Operand("CLIENT", "the client", optional=True, choices=CLIENTS),),
        options=(
            _DRY_RUN._replace(help="say in a few lines what would change and write nothing"),
            Option("--diff", "print the whole change and write nothing"),
            Option("--remove", "take exactly what memd put in out again"),
            Option("--all", "with --remove: out of every client, and all else but memories"),
            Option("--messages", "bring messages of other agents too; with --remove, no more"),
            Option("--rules", "ask memd before each tool too; with --remove, no more"),
            Option("--status", "say what is set up; status 1 unless all that is here is"),
            Option("--yes", "answer yes: set up every client that is here, or remove all"),
            Option(
                "--reader",
                "the answer to the question whether memd may read sessions with your plan",
                choices=("yes", "no"),
            ),
            Option("--settings", "the client's file, where it is another one", "FILE"),
        ),
        examples=(
            ("memctl setup", "what is here, each with its change"),
            ("memctl setup zsh", "completion of memctl in this shell"),
            ("memctl setup claude-code --diff", "see the change first"),
            ("memctl setup claude-code --messages", "and bring messages of other agents"),
            ("memctl setup claude-code --rules", "and have your rules asked before each tool"),
            ("memctl setup --reader no", "let no program read sessions, without a question"),
            ("memctl setup claude-code --remove", "take out what memd put in"),
            ("memctl setup --remove --all", "before memd is uninstalled"),
        ),
    ),
    Command(
        ("hook",),
        "answer a client's hook",
        "What memctl setup writes into a client's configuration runs the same file directly, "
        "which is quicker. The event's payload comes on standard input, the answer goes to "
        "standard output. Whatever fails, nothing is printed and the status is 0, within 200 ms "
        "for a prompt (MEMD_HOOK_DEADLINE_MS) and a second for other events.",
        "shells:hook",
        method="",
        operands=(
            Operand("CLIENT", "the client, such as claude-code"),
            Operand("EVENT", "the client's name of the event"),
        ),
        examples=(("memctl hook claude-code Stop < event.json", "play an event by hand"),),
    ),
    Command(
        ("config",),
        "print what the settings file changes, and the socket",
        "The user's own settings file, checked: each option that differs from its default, and "
        "what is wrong. docs/settings.md lists all options; a project and the system may add to "
        "them.",
        "files:config",
        method="",
        options=(
            Option("--all", "the options at their defaults too"),
            Option("--socket-path", "print only the socket's path"),
        ),
        examples=(
            ("memctl config --all", "every option with its value"),
            ('nc -U -N "$(memctl config --socket-path)"', "talk to the daemon by hand"),
        ),
    ),
    Command(
        ("logs",),
        "print the daemon's log",
        "The last lines of the log of a daemon that a client started; with --follow also those "
        "that come, over restarts and rotations. FILE is another log, or - for standard input: a "
        "service logs to the journal of systemd. With --json and --follow each line is one JSON "
        "object.",
        "files:logs",
        method="",
        operands=(Operand("FILE", "the log (default: the daemon's own)", optional=True),),
        options=(
            Option("--follow", "go on with what comes", short="-f"),
            Option("--lines", "how many lines at first (default: 50)", "N", number),
            Option("--level", "only lines of this level or a worse one", choices=LOG_LEVELS),
        ),
        examples=(
            ("memctl logs -f --level warning", "what somebody should look at, as it happens"),
            ("journalctl --user -u memd -o cat -f | memctl logs -f -", "the log of the service"),
        ),
    ),
    Command(
        ("mcp",),
        "serve a client that speaks the Model Context Protocol",
        "Speaks on standard input and output until the input ends, in each version of the protocol "
        "from 2024-11-05 to 2026-07-28. The tools are search, read, save, forget, history, undo "
        "and suggestions; memories are resources as well. The project is that of the client's "
        "first root, else of the working directory; --cwd decides it. A daemon is started with "
        "the first call and again after it was lost.",
        "shells:mcp",
        method="",
        examples=(("claude mcp add memd -- memctl mcp", "tell a client of it"),),
    ),
    Command(
        ("call",),
        "call any method of the daemon",
        "Prints its result as JSON. Values are text or, where the method takes no text, JSON. The "
        "project's directory and an id of the request are added where the method takes them. "
        "rpc.discover lists the methods with their parameters.",
        "calling:call",
        method="",
        operands=(
            Operand("NAME", "the method", param=""),
            Operand("PARAMETERS", "NAME=VALUE", optional=True, many=True, param=""),
        ),
        examples=(
            ("memctl call memory.list limit=5", "the newest five memories"),
            ("memctl call session session_id=nightly event=start", "a script's session begins"),
        ),
    ),
    *(
        Command(
            ("context", verb),
            summary,
            f"Calls context.{verb} and prints its result as JSON. The method's parameters are one "
            "JSON object on standard input; the project's directory is added (docs/context.md).",
            "calling:context",
        )
        for verb, summary in (
            ("plan", "say what to send of a conversation"),
            ("spill", "store a large result of a tool"),
            ("compact", "replace a conversation by its notes or a summary"),
        )
    ),
    Command(
        ("completion",),
        "print a completion script",
        "For the shell that is named.",
        "shells:completion",
        method="",
        operands=(Operand("SHELL", "the shell", choices=SHELLS),),
        options=(
            Option("--values", "for the script: print what this method lists", "METHOD", param=""),
        ),
        examples=(
            ("memctl completion bash > ~/.local/share/bash-completion/completions/memctl", "bash"),
            ("memctl completion fish > ~/.config/fish/completions/memctl.fish", "fish"),
        ),
    ),
    Command(
        ("help",),
        "show the help of a command",
        "The same as --help after it. help all lists all commands, help models says how memd gets "
        "a model.",
        "shells:help_",
        method="",
        operands=(Operand("COMMAND", "the command's words", optional=True, many=True),),
    ),
)
