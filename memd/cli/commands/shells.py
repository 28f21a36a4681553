"""completion and help: what a shell and its user want to know of the command line itself."""

from memd.cli.arguments import parser
from memd.cli.invocation import Invocation


def completion(invocation: Invocation) -> None:
    """Print the completion script of a shell."""
    from memd.cli import completion as scripts  # noqa: PLC0415 - nothing else needs it

    shell = invocation.options.shell
    script = scripts.SCRIPTS[shell]()
    invocation.screen.answer({"shell": shell, "script": script}, script)


def help_(invocation: Invocation) -> None:
    """Print the help of a command; argparse ends the program after it."""
    parser().parse_args([*invocation.options.command, "--help"])
