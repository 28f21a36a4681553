"""completion, help and hook: what a shell, its user and a client's hook ask memctl itself."""

import sys
from collections.abc import Sequence

from memd.cli.arguments import parser
from memd.cli.invocation import Invocation


def completion(invocation: Invocation) -> None:
    """Print the completion script of a shell."""
    import shtab  # noqa: PLC0415 - nothing else needs it

    shell = invocation.options.shell
    script = shtab.complete(parser(shtab.FILE), shell).rstrip("\n") + "\n"
    invocation.screen.answer({"shell": shell, "script": script}, script)


def help_(invocation: Invocation) -> None:
    """Print the help of a command; argparse ends the program after it."""
    parser().parse_args([*invocation.options.command, "--help"])


def hook(arguments: Sequence[str] | Invocation) -> int:  # pragma: no cover - leaves by _exit
    """Serve one event in the place of this process; never returns in practice.

    The file leaves with status 0 whatever happens, so no exit status comes from here.
    """
    from memd.cli import hook as file  # noqa: PLC0415 - imports posix, which a help text can do without

    if isinstance(arguments, Invocation):
        arguments = [arguments.options.client, arguments.options.event]
    sys.argv[1:] = arguments
    file.main()
    return 0
