"""completion, conformance, help, hook, mcp and version: commands for shells and programs."""

import sys

from memd import __version__
from memd.cli.arguments import CompletionHints, parser
from memd.cli.invocation import Invocation
from memd.client.errors import DaemonUnavailableError

# The shell command that lists completions from the project; it does not start a daemon.
_FIRST_COLUMN = "memctl --no-start --quiet --color never {} 2>/dev/null | awk '{{print $1}}'"
# In shtab's form zsh would run this for every command at once, whenever it reads the script.
_ZSH_FUNCTION = """_memctl_listed() {{
  local -a listed
  listed=(${{(f)"$({})"}})
  compadd -a listed
}}""".format(_FIRST_COLUMN.format('"$@"'))


def completion(invocation: Invocation) -> None:
    """Print the completion script of a shell."""
    import shtab  # noqa: PLC0415 - nothing else needs it

    def completion_of(words: str) -> object:
        """Return what completes the values that the command of these words lists."""
        return {**shtab.cmd(_FIRST_COLUMN.format(words)), "zsh": f"{{_memctl_listed {words}}}"}

    shell = invocation.options.shell
    hints = CompletionHints(shtab.FILE, completion_of)
    preamble = _ZSH_FUNCTION if shell == "zsh" else ""
    script = shtab.complete(parser(hints), shell, preamble=preamble)
    script = f"{script.rstrip()}\n"
    invocation.screen.answer({"shell": shell, "script": script}, script)


def version(invocation: Invocation) -> None:
    """Print memctl's version and, where one runs, the daemon's."""
    answer = {"memctl": __version__, "memd": None}
    try:
        invocation.client(start=False)
        answer["memd"] = invocation.call("status")["version"]
    except DaemonUnavailableError:
        pass
    daemon = f"memd {answer['memd']}" if answer["memd"] else "no memd is running"
    invocation.screen.answer(answer, f"memctl {__version__}, {daemon}")


def help_(invocation: Invocation) -> None:
    """Print the help of a command; argparse ends the program after it."""
    parser().parse_args([*invocation.options.command, "--help"])


def mcp(invocation: Invocation) -> None:
    """Serve a client of the Model Context Protocol until it leaves."""
    from memd.mcp.server import serve  # noqa: PLC0415 - nothing else needs it

    options, places = invocation.options, invocation.places
    fixed, start = bool(options.cwd), not options.no_start
    serve(places, invocation.environ, invocation.cwd, fixed=fixed, start=start)


def conformance(invocation: Invocation) -> int:
    """Test a client's program against a simulated daemon."""
    import subprocess  # noqa: PLC0415 - no other command here starts a program

    switch = ["--json"] if invocation.options.json else []
    command = [sys.executable, "-m", "memd.testing.conformance", *switch, "--"]
    command += invocation.options.command
    return subprocess.run(command, env=dict(invocation.environ), check=False).returncode


def hook(invocation: Invocation) -> int:  # pragma: no cover - leaves by _exit
    """Serve one event in this process, which then exits."""
    from memd.cli import hook as file  # noqa: PLC0415 - imports posix, which a help text can do without

    sys.argv[1:] = [invocation.options.client, invocation.options.event]
    file.main()
    return 0
