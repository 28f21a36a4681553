"""completion and help: what a shell and its user want to know of the command line itself."""

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
