"""Run memctl: from the command line to the exit status, with every failure as a sentence.

Rules of this file
- Whatever happens, a person reads a sentence and never a traceback, and the exit status is one of
  the documented ones (``arguments.EXIT_STATUS``).
- A reader who stops reading (``memctl list | head``) is no failure.
- A command's module is imported when the command runs.
"""

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import closing, suppress
from importlib import import_module
from io import TextIOWrapper
from typing import TextIO

from memd.base.errors import MemdError, NotFound
from memd.cli.arguments import parser
from memd.cli.grammar import MEMORIES
from memd.cli.invocation import Invocation, Surroundings, has_surrogates
from memd.cli.output import escape

USAGE = 2
INTERRUPTED = 130
_MISSING_KINDS = (NotFound.kind, "version_not_found")  # a memory, or a version of it
# Commands turn the errors of their own files into sentences, so these are of standard output.
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def start(arguments: Sequence[str]) -> int:
    """Run memctl with this process's environment and streams; return the exit status."""
    surroundings = Surroundings(
        os.environ,
        os.path.expanduser("~"),
        _standard_input(),
        _escaping_stream(sys.stdout),
        _escaping_stream(sys.stderr),
        unread=sys.stdout is None,
    )
    return run(arguments, surroundings)


def run(arguments: Sequence[str], surroundings: Surroundings) -> int:
    """Run one command line and return its exit status; every failure becomes a sentence."""
    try:
        status = _run_command(arguments, surroundings)
        surroundings.stdout.flush()
    except SystemExit as error:  # argparse, after --help or a wrong command line
        return error.code if isinstance(error.code, int) else USAGE
    except KeyboardInterrupt:
        surroundings.stderr.write("\n")
        return INTERRUPTED
    except BrokenPipeError:
        _stop_writing(surroundings)
        return 0
    except Exception as error:  # noqa: BLE001 - the edge: a person gets a sentence, never a traceback
        return _print_failure(surroundings, error)
    return status


def _print_failure(surroundings: Surroundings, error: Exception) -> int:
    """Print the sentence of an error, and return the exit status."""
    if isinstance(error, MemdError):
        _print_error(surroundings, f"{error}\n  {error.hint}" if error.hint else str(error))
        return error.exit_status
    if isinstance(error, OSError) and error.errno in _DISK_ERRORS and error.filename is None:
        _stop_writing(surroundings)
        _print_error(surroundings, f"the output cannot be written: {error.strerror}")
    else:
        _print_error(surroundings, f"{type(error).__name__}: {error}")
    return 1


def _print_error(surroundings: Surroundings, sentence: str) -> None:
    """Print an error on standard error, with control characters escaped on a terminal."""
    shown = escape(sentence) if surroundings.stderr.isatty() else sentence
    surroundings.stderr.write(f"memctl: {shown}\n")


def _run_command(arguments: Sequence[str], surroundings: Surroundings) -> int:
    """Parse a command line, resolve the names of memories in it, and run its command."""
    top = parser(line=arguments)
    if any(has_surrogates(word) for word in arguments):
        top.error("an argument is not UTF-8")
    options = top.parse_args(arguments)
    if options.run is None:
        surroundings.stderr.write(top.format_help())
        return USAGE
    module, _, function = options.run.run.partition(":")
    command = getattr(import_module(f"memd.cli.commands.{module}"), function)
    with closing(Invocation(options, surroundings)) as invocation:
        memory = ""
        for argument in (*options.run.operands, *options.run.options):
            # A person may give a memory's name instead of its path.
            name = getattr(options, argument.attribute) if argument.listed == MEMORIES else None
            if name:
                memory = invocation.memory(name)
                setattr(options, argument.attribute, memory)
        try:
            return int(command(invocation) or 0)
        except NotFound as error:
            if memory and error.kind in _MISSING_KINDS and "change" not in error.facts:
                raise invocation.no_memory(memory, error) from error
            raise


def _standard_input() -> TextIO:
    """Return standard input as UTF-8 text with its line ends unchanged."""
    if sys.stdin is None:  # the process was started with a closed input
        return open(os.devnull, encoding="utf-8")
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="strict", newline="")
    return sys.stdin


def _escaping_stream(stream: TextIO | None) -> TextIO:
    """Return a stream that writes characters outside its encoding as escapes."""
    if stream is None:  # the process was started with this stream closed
        return open(os.devnull, "w", encoding="utf-8")
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream


def _stop_writing(surroundings: Surroundings) -> None:
    """Send the rest of standard output to /dev/null, since Python flushes it at its end."""
    with suppress(OSError, ValueError):
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, surroundings.stdout.fileno())
        os.close(devnull)
