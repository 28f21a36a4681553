"""completion, help, hook and mcp: commands for shells and programs."""

import sys
from collections.abc import Iterator

from memd.base.errors import Invalid
from memd.cli.arguments import COMMANDS, CompletionHints, overview, parser
from memd.cli.invocation import Invocation

# The list in each method's result that completion takes values from, and the member of its items.
_VALUES = {
    "memory.list": ("memories", "path"),
    "notes.list": ("notes", "session"),
    "agent.list": ("agents", "address"),
    "review.list": ("items", "id"),
}
# What ``memctl help`` explains beside commands.
_TOPICS = {
    "models": """\
memd works without a model. With one it chooses memories for prompts, learns
from conversations, keeps notes and consolidates, for a dollar a day at most
(spend.dollars_per_day).

  your own plan   memctl setup asks once whether memd may read a session with
                  claude, codex or gemini when it ends; --reader yes or no
  an API key      ANTHROPIC_API_KEY=... in ~/.config/memd/env (chmod 600),
                  and the extra anthropic
  a server        [model] base_url, auth_token and name in
                  ~/.config/memd/memd.toml (chmod 600)
  off again       model.enabled = false in memd.toml

memctl doctor says which one is used and what is ignored, memctl report what it
cost. docs/models.md says what is sent to whom.
""",
}
# Functions that complete the values of the method $1; they do not start a daemon.
_PREAMBLES = {
    # Bash inserts what it gets, so this quotes, and compares with what the person's word $2 means.
    # Behind a quote of the person's only values are offered that mean themselves there.
    "bash": r"""_memctl_listed() {
  local word=$2 in_quotes= value
  case $word in
    [\'\"]*) in_quotes=1 word=${word:1} ;;
    *) word=${word//\\/} ;;
  esac
  memctl --no-start --quiet completion bash --values "$1" 2>/dev/null |
    while IFS= read -r value; do
      [[ $value == "$word"* ]] || continue
      if [[ -z $in_quotes ]]; then
        printf '%q\n' "$value"
      elif [[ $value != *[\\\"\'\$\`!]* ]]; then
        printf '%s\n' "$value"
      fi
    done
}""",
    # In shtab's form zsh would list for every command at once, whenever it reads the script.
    "zsh": """_memctl_listed() {
  local -a listed
  listed=(${(f)"$(memctl --no-start --quiet completion zsh --values "$1" 2>/dev/null)"})
  compadd -a listed
}""",
    "fish": """function _memctl_listed
  memctl --no-start --quiet completion fish --values $argv[1] 2>/dev/null
end""",
}


def completion(invocation: Invocation) -> None:
    """Print the completion script of a shell, or with ``--values`` what a method lists."""
    options, screen = invocation.options, invocation.screen
    if options.values:
        values = [value for value in _values(invocation) if value.isprintable()]
        screen.answer({"values": values}, "\n".join(values))
        return
    import shtab  # noqa: PLC0415 - nothing else needs it

    methods = {command.name: command.api_method for command in COMMANDS}

    def completion_of(words: str) -> object:
        """Return what completes the values that the command of these words lists."""
        method = methods[words]
        function = f"_memctl_{method.replace('.', '_')}"
        return {
            "bash": function,
            "zsh": f"{{_memctl_listed {method}}}",
            "fish": f"(_memctl_listed {method})",
            "preamble": {"bash": f'{function}() {{ _memctl_listed {method} "$1"; }}'},
        }

    hints = CompletionHints(shtab.FILE, completion_of)
    script = shtab.complete(parser(hints), options.shell, preamble=_PREAMBLES[options.shell])
    script = f"{script.rstrip()}\n"
    screen.answer({"shell": options.shell, "script": script}, script)


def _values(invocation: Invocation) -> Iterator[str]:
    """Yield the values that the method of ``--values`` lists."""
    method, after = invocation.options.values, None
    group, member = _VALUES[method]
    while True:
        answer = invocation.ask(method, after=after)
        yield from (item[member] for item in answer[group])
        after = answer.get("next")
        if not after:
            return


def help_(invocation: Invocation) -> None:
    """Print the help of a command or a topic; argparse ends the program after a command's."""
    words = invocation.options.command
    text = overview(everything=True) if words == ["all"] else _TOPICS.get(" ".join(words))
    if text is None:
        from difflib import get_close_matches  # noqa: PLC0415 - only a command or a wrong word

        names = [word for each in COMMANDS for word in (each.words[0], *each.aliases)]
        nearest = get_close_matches(words[0], [*names, *_TOPICS, "all"], 1)
        if nearest and nearest[0] not in names:
            raise Invalid(f"there is no command {words[0]}", hint=f"the nearest is {nearest[0]}")
        parser(line=words).parse_args([*words, "--help"])
        return
    invocation.screen.answer({"help": text}, text)


def mcp(invocation: Invocation) -> None:  # pragma: no cover - runs as a process
    """Pass lines between a client of the Model Context Protocol and the daemon until it leaves."""
    from memd.cli.mcp import McpBridge  # noqa: PLC0415 - nothing else needs it

    options = invocation.options
    fixed, start = bool(options.cwd), not options.no_start
    McpBridge(invocation.environ, invocation.cwd, fixed=fixed, start=start).run()


def hook(invocation: Invocation) -> int:  # pragma: no cover - leaves by _exit
    """Serve one event in this process, which then exits."""
    from memd.cli import hook as file  # noqa: PLC0415 - imports posix, which a help text can do without

    sys.argv[1:] = [invocation.options.client, invocation.options.event]
    file.main()
    return 0
